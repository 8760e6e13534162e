import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Copy, rowsAt } from '../../support/resources/copy.ts';
import { bearer } from '../../support/access/keyed.ts';
import { below, oneOf, randomFrom, type Random } from '../../support/store/random-collection.ts';
import { ask, opened, PATH, type Opened } from '../../support/resources/several.ts';

const HISTORIES = Number(process.env.HISTORIES ?? (process.env.LONG ? 300 : 3));
const FIRST = Number(process.env.SEED ?? 1);
const STEPS = 14;

for (const store of ['sqlite', 'mongodb'] as const)
  test(`${store}: a copy of several sets that is cut anywhere equals them in the end, after ${HISTORIES} histories`, async (t) => {
    const at = await opened(t, store);
    if (!at) return;
    for (let seed = FIRST; seed < FIRST + HISTORIES; seed++)
      try {
        await runHistory(at, randomFrom(seed));
      } catch (error) {
        throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
      }
  });

async function runHistory(at: Opened, random: Random): Promise<void> {
  const { server } = at;
  const name = oneOf(random, ['all', 'acme']);
  const headers = bearer(name);
  const copy = new Copy(false, headers);
  const sets = async () => {
    const found = await Promise.all(
      ['orders', 'customers'].map(async (set) =>
        [...(await rowsAt(`${server.url}/${set}/stream`, headers))].map(
          ([key, text]) => [`${set} ${key}`, text] as const,
        ),
      ),
    );
    return new Map(found.flat());
  };
  await write(at, random);
  copy.cursor = (await ask(at, '', name)).cursor;
  copy.rows = await sets();
  const read = async (how: string, bytes: number) => {
    const until = ({ isUpToDate }: Copy) => how.includes('follow') && isUpToDate;
    const answer = await copy.read(`${server.url}${PATH}&since=${copy.cursor}${how}`, { bytes, until });
    assert.deepEqual([answer.status, answer.error], [200, null], answer.problem);
  };
  for (let step = 0; step < STEPS; step++) {
    const bytes = random() < 0.5 ? below(random, 3_000) : Infinity;
    const how = oneOf(random, ['&follow=true', '&wait=0', `&limit=${2 + below(random, 9)}`]);
    if (random() < 0.5) await Promise.all([write(at, random), read(how, bytes)]);
    else {
      await write(at, random);
      await read(how, bytes);
    }
  }
  for (let rounds = 0; rounds === 0 || !copy.isUpToDate; rounds++) {
    assert.ok(rounds < 1_000, 'it comes to its end');
    await read('&limit=7', Infinity);
  }
  assert.deepEqual([...copy.rows].sort(), [...(await sets())].sort());
}

/** Writes a few rows of any tenant into each set, and removes some. */
async function write({ orders, customers }: Opened, random: Random): Promise<void> {
  for (let n = below(random, 20); n > 0; n--) {
    const table = oneOf(random, [orders, customers]);
    const id = `r${below(random, 30)}`;
    if (random() < 0.3) await table.remove(id);
    else
      await table.put({
        _id: id,
        tenant: oneOf(random, ['acme', 'FOREIGN']),
        n: below(random, 1_000),
        filler: 'x'.repeat(below(random, 200)),
      });
  }
}

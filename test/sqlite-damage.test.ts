/** What became of bytes on the disk is told: a store with damaged bytes gives the rows that were written, or an error. */
import assert from 'node:assert/strict';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { AppError } from '../src/errors.ts';
import { ITEM_COLLECTION } from '../src/resources/item-collection.ts';
import { Int32 } from '../src/store/bson.ts';
import { Slots } from '../src/store/slots.ts';
import { FILE } from '../src/store/sqlite/file.ts';
import { openSqlite } from '../src/store/sqlite.ts';
import type { Plan } from '../src/store/store.ts';
import { inCategory, expectedItems, makeItem, makeItems, type Item } from './support/items.ts';
import { below, randomFrom } from './support/random-collection.ts';
import { PLENTY, readRows } from './support/reading.ts';
import { testDirectory } from './support/sqlite.ts';

const PLANS: readonly Plan[] = [
  { sort: '_id', direction: 1 },
  { sort: 'price', direction: -1 },
  { sort: 'price', direction: 1, ...inCategory('b') },
];
const SIZE = { rows: 40, bytes: PLENTY };
const DAMAGES = Number(process.env.DAMAGES ?? (process.env.LONG ? 5_000 : 60));

/** A closed store with these items. */
async function filled(t: TestContext, items: readonly Item[]): Promise<string> {
  const directory = await testDirectory(t);
  const store = await openSqlite({ items: ITEM_COLLECTION, directory, slots: new Slots() });
  await store.items.insert(
    items.map(({ bytes }) => bytes),
    'fail',
  );
  await store.close();
  return directory;
}

/** All rows of a plan, read in batches that end where the store says. */
async function walk(items: Awaited<ReturnType<typeof openSqlite>>['items'], plan: Plan): Promise<Buffer[]> {
  const rows: Buffer[] = [];
  for (let after: Parameters<typeof readRows>[2]['after'], more = true; more;) {
    const batch = await readRows(items, plan, after ? { after } : {}, SIZE);
    rows.push(...batch.rows);
    [after, more] = [batch.last ?? undefined, batch.more];
  }
  return rows;
}

test('a row with a flipped bit is an error, and /readyz tells it from then on, while other rows are read', async (t) => {
  const rows = [1, 2, 3].map((n) => makeItem(new Int32(n), 'a', new Int32(n), `filler ${n} of a row`));
  const directory = await filled(t, rows);
  const file = await readFile(join(directory, FILE));
  const at = file.indexOf('filler 2 of a row');
  file[at] = (file[at] ?? 0) ^ 1;
  await writeFile(join(directory, FILE), file);
  const warnings: string[] = [];
  const onWarning = (message: string) => warnings.push(message);
  const store = await openSqlite({ items: ITEM_COLLECTION, directory, slots: new Slots(), onWarning });
  t.after(() => store.close());
  await store.ping();
  const unfit = (error: unknown) => error instanceof AppError && error.code === 'store-unfit';
  await assert.rejects(walk(store.items, { sort: '_id', direction: 1 }), unfit);
  await assert.rejects(store.ping(), unfit);
  assert.match(warnings.join(), /the file of the store is damaged: row 1 of a batch .*restore a backup/);
  const first = await readRows(store.items, { sort: '_id', direction: 1 }, {}, { rows: 1, bytes: PLENTY });
  assert.deepEqual(first.rows, [rows[0]?.bytes]);
});

test(`a store with a byte that is another one gives the rows that were written or an error, ${DAMAGES} times`, async (t) => {
  const random = randomFrom(1);
  const items = makeItems(300);
  const expected = PLANS.map((plan) => expectedItems(items, plan).map(({ bytes }) => bytes));
  const directory = await filled(t, items);
  const whole = await readFile(join(directory, FILE));
  const seen = { right: 0, told: 0 };
  for (let n = 0; n < DAMAGES; n++) {
    const damaged = await testDirectory(t);
    await copyFile(join(directory, 'sluice.mark'), join(damaged, 'sluice.mark'));
    const at = below(random, whole.length);
    const bit = 1 << below(random, 8);
    const file = Buffer.from(whole);
    file[at] = (file[at] ?? 0) ^ bit;
    await writeFile(join(damaged, FILE), file);
    const where = `bit ${bit} of byte ${at % 4_096} of page ${Math.floor(at / 4_096) + 1}`;
    let store: Awaited<ReturnType<typeof openSqlite>>;
    try {
      store = await openSqlite({ items: ITEM_COLLECTION, directory: damaged, slots: new Slots() });
    } catch (error) {
      assert.ok(error instanceof Error);
      seen.told++;
      continue;
    }
    for (const [index, plan] of PLANS.entries()) {
      const rows = await walk(store.items, plan).catch((error: unknown) => {
        assert.ok(error instanceof AppError, `${where}: ${String(error)}`);
        return null;
      });
      if (rows === null) seen.told++;
      else {
        assert.deepEqual(rows, expected[index], `${where}, ${JSON.stringify(plan)}`);
        seen.right++;
      }
    }
    await store.close().catch(() => undefined);
  }
  t.diagnostic(`${seen.right} walks were right, ${seen.told} told the damage`);
});

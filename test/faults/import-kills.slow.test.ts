import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { generateItems } from '../../src/import/synthetic.ts';
import { importRows } from '../../src/import/import.ts';
import type { OwnedCollection } from '../../src/store/store.ts';
import { startProgram } from '../support/process/child-program.ts';
import { openDirectory, openRaw } from '../support/store/sqlite/sqlite.ts';
import { NEVER, PLENTY, readRows } from '../support/store/reading.ts';
import { temporaryFolder } from '../support/directory.ts';
import { eachRow } from '../support/import/each-row.ts';

const COUNT = 15_000;
/** Of three kills each. */
const ROUNDS = Number(process.env.ROUNDS ?? (process.env.LONG ? 67 : 1));
const OPENED_MS = 2_000;
const ID_BYTES = 12;

/** Runs an import in a process of its own and kills it as soon as it says that `durable` rows are in. Resolves with how many it said. */
async function killedAt(t: TestContext, directory: string, durable: number): Promise<number> {
  const { child, ended, lines } = startProgram(t, 'import/import-child.ts', directory, COUNT);
  let said = 0;
  for await (const line of lines()) {
    said = Number(line);
    if (said >= durable) child.kill('SIGKILL');
  }
  const [, signal] = await ended;
  assert.equal(signal, 'SIGKILL', 'it was killed before its end');
  return said;
}

async function allRows(items: OwnedCollection): Promise<readonly Buffer[]> {
  const size = { rows: 1_000_000, bytes: PLENTY };
  const { rows, more } = await readRows(items, { sort: '_id', direction: 1 }, {}, size);
  assert.equal(more, false);
  return rows;
}

/** The id of a row, which comes first in it: its type and name are before it. */
const idOf = (row: Buffer) => row.toString('hex', 9, 9 + ID_BYTES);

test(`an import, killed ${3 * ROUNDS} times, loses no durable row and is complete after it is repeated`, async (t) => {
  const expected = new Map<string, Buffer>();
  for await (const row of eachRow(generateItems(COUNT, 1)))
    if ('item' in row) expected.set(idOf(Buffer.from(row.item)), Buffer.from(row.item));
  let longest = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const directory = await temporaryFolder(t);
    let before = 0;
    for (const durable of [1 + round, 2_000 - 23 * round, 4_000 - 47 * round]) {
      const said = await killedAt(t, directory, durable);
      const file = openRaw(directory);
      assert.deepEqual(file.faults(), [], 'the indexes have what the rows have');
      file.close();
      const started = performance.now();
      const store = await openDirectory(directory);
      longest = Math.max(longest, performance.now() - started);
      const rows = await allRows(store.items);
      await store.close();
      assert.ok(
        rows.length >= before + said,
        `${rows.length} of ${before} and ${said} durable rows are there`,
      );
      for (const row of rows) assert.ok(expected.get(idOf(row))?.equals(row), 'every row is whole');
      before = rows.length;
    }
    const store = await openDirectory(directory);
    const { written, skipped, failed } = await importRows({
      open: () => Promise.resolve(store.items),
      source: generateItems(COUNT, 1),
      onConflict: 'skip',
      signal: NEVER,
      progress: () => undefined,
      report: (at, reason) => assert.fail(`${at}: ${reason}`),
    });
    assert.deepEqual([written + skipped, skipped, failed], [COUNT, before, 0]);
    assert.ok(Buffer.concat(await allRows(store.items)).equals(Buffer.concat([...expected.values()])));
    await store.close();
  }
  t.diagnostic(`open again within ${longest.toFixed(0)} ms`);
  assert.ok(longest < OPENED_MS);
});

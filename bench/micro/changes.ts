/**
 * What the log of changes costs writers of the embedded store: node --import tsx bench/micro/changes.ts [pairs]
 *
 * The same rows are written into two sets, of which one has no log. Rounds come in pairs, one with and one without, and each
 * pair gives one ratio. The last row also keeps what rows were, for a key that opens a part. The times are CPU time of this
 * process.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SyntheticItems } from '../../src/import/synthetic.ts';
import { ITEM_COLLECTION } from '../../src/resources/item-collection.ts';
import { predicateOf } from '../../src/store/scope/predicate.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { SqliteCollection } from '../../src/store/sqlite/collection.ts';
import { Core } from '../../src/store/sqlite/core.ts';
import { openFile } from '../../src/store/sqlite/file/file.ts';
import { median } from '../results.ts';
import { printMachine } from './turns.ts';

const pairs = Number(process.argv[2]) || 20; // --micro is not a number
const ROWS_OF_ROUND = { 1: 400, 512: 20 * 512 } as const;
const DAY_MS = 24 * 60 * 60_000;
const SCOPE = { where: [{ path: 'category', value: 'toys' }], hide: ['price'] };

const directory = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
const slots = new Slots();
const onWarning = (message: string) => assert.fail(message);
const core = new Core({
  file: await openFile(directory, onWarning),
  directory,
  slots,
  checkpointPages: 1_000,
  onWarning,
  snapshotMs: 60_000,
  ttlMs: 7 * DAY_MS,
  wallClock: Date.now,
  now: () => performance.now(),
});
let made = 0;

/** A new set. With a part, its log also keeps what rows were. */
async function open(logs: 'nothing' | 'changes' | 'a part'): Promise<SqliteCollection> {
  const collection = await SqliteCollection.open(core, {
    name: `rows ${++made}`,
    label: 'rows',
    hasChanges: logs !== 'nothing',
    indexes: ITEM_COLLECTION.indexes,
  });
  if (logs === 'a part')
    await collection.changes?.within(predicateOf(SCOPE)).now(new AbortController().signal);
  return collection;
}

/** Writes rows in transactions of `size`, and returns the CPU time in microseconds for a row. */
async function writeRound(set: SqliteCollection, rows: readonly Uint8Array[], size: number): Promise<number> {
  const started = process.cpuUsage();
  for (let at = 0; at < rows.length; at += size) {
    const { written } = await set.insert(rows.slice(at, at + size), 'replace');
    assert.equal(written, Math.min(size, rows.length - at));
  }
  const { user, system } = process.cpuUsage(started);
  return (user + system) / rows.length;
}

async function measure(size: 1 | 512, what: 'new' | 'replaced', logs: 'changes' | 'a part'): Promise<void> {
  const logged = await open(logs);
  const plain = await open('nothing');
  const items = new SyntheticItems(1);
  let rows: readonly Uint8Array[] = [];
  const costs: { readonly with: number; readonly without: number }[] = [];
  for (let pair = -2; pair < pairs; pair++) {
    if (what === 'new' || pair < 0) rows = Array.from({ length: ROWS_OF_ROUND[size] }, () => items.next());
    const isFirst = pair % 2 === 0;
    const first = await writeRound(isFirst ? logged : plain, rows, size);
    const second = await writeRound(isFirst ? plain : logged, rows, size);
    if (pair >= 0) costs.push(isFirst ? { with: first, without: second } : { with: second, without: first });
  }
  const shown = (values: readonly number[]) => median(values).toFixed(1).padStart(7);
  const more = median(costs.map((cost) => cost.with / cost.without)) - 1;
  process.stdout.write(
    `${shown(costs.map((cost) => cost.without))} µs CPU without, ${shown(costs.map((cost) => cost.with))} with: ` +
      `${(more * 100).toFixed(1).padStart(5)} %  ${what} rows, ${size} in a transaction, log of ${logs}\n`,
  );
}

try {
  printMachine();
  for (const size of [1, 512] as const)
    for (const what of ['new', 'replaced'] as const) await measure(size, what, 'changes');
  await measure(512, 'replaced', 'a part');
} finally {
  await core.close();
  rmSync(directory, { recursive: true });
}

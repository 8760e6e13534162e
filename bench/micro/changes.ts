/**
 * What the log of changes costs writers of the embedded store: node --import tsx bench/micro/changes.ts [pairs]
 *
 * The same rows are written into two files, of which one has no log. Rounds come in pairs, one with and one without, and
 * each pair gives one ratio. The last two rows also note what rows were, for a key that opens a part. The times are CPU time of this process, in which lmdb's threads count.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SyntheticItems } from '../../src/import/synthetic.ts';
import { Commits } from '../../src/store/lmdb/commits.ts';
import { ChangeLog, ITEMS } from '../../src/store/lmdb/feed/log.ts';
import { openFile, tablesOf } from '../../src/store/lmdb/file.ts';
import { checkFormat } from '../../src/store/lmdb/format.ts';
import { LmdbWriter } from '../../src/store/lmdb/write.ts';
import { storeDeclaration } from '../../src/store/lmdb/rows/declare.ts';
import { Resources } from '../../src/store/lmdb/rows/record.ts';
import { recordOf, ResourceWriter } from '../../src/store/lmdb/rows/write.ts';
import type { InsertResult } from '../../src/store/store.ts';
import { median } from '../results.ts';
import { printMachine } from './turns.ts';

const pairs = Number(process.argv[2]) || 20; // --micro is not a number
const ROWS_OF_ROUND = { 1: 400, 512: 20 * 512 } as const;
const GATE = { isUnderWay: false, untilFree: () => Promise.resolve() };
const ORDERS = { name: 'orders', collection: 'orders', indexes: [['category', 'price']] };
const DAY_MS = 24 * 60 * 60_000;
const ignore = (): void => undefined;
/** The part that a key opens: what a write notes for it. */
const VIEW = { where: ['category'], hide: ['price'] };
const NO_LOG = { begin: () => ({ addNew: ignore, addReplaced: ignore, end: ignore }) };

interface Writer {
  insert(rows: readonly Uint8Array[], onConflict: 'replace'): Promise<InsertResult>;
}

type SetName = 'items' | 'a resource';
const directory = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
const files: { close(): Promise<void> }[] = [];

/** A writer into a new file. With a view, its log also notes what rows were for the readers of a part. */
async function open(name: SetName, logs: 'nothing' | 'changes' | 'a view'): Promise<Writer> {
  const path = join(directory, `${files.length}.mdb`);
  const file = openFile(path);
  files.push(file);
  checkFormat(file, path);
  const tables = tablesOf(file);
  const commits = new Commits(file, {
    check: ignore,
    faultOf: (error) => Promise.resolve(error),
    onLost: ignore,
  });
  const changes = new ChangeLog(tables, { ttlMs: 7 * DAY_MS, now: Date.now });
  const log = logs === 'nothing' ? NO_LOG : changes;
  const keep = (set: number) =>
    logs === 'a view' ? commits.run(() => changes.views.keep(set, VIEW, 0)) : Promise.resolve(true);
  if (name === 'items') {
    assert.ok(await keep(ITEMS));
    return new LmdbWriter(tables, commits, GATE, log);
  }
  const resources = new Resources(tables.meta);
  await commits.run(() => storeDeclaration(tables, resources, ORDERS));
  assert.ok(await keep(recordOf(resources, ORDERS.collection).number));
  return new ResourceWriter(tables, resources, ORDERS.collection, commits, GATE, log);
}

/** Writes rows in transactions of `size`, and returns the CPU time in microseconds for a row. */
async function writeRound(writer: Writer, rows: readonly Uint8Array[], size: number): Promise<number> {
  const started = process.cpuUsage();
  for (let at = 0; at < rows.length; at += size) {
    const { written } = await writer.insert(rows.slice(at, at + size), 'replace');
    assert.equal(written, Math.min(size, rows.length - at));
  }
  const { user, system } = process.cpuUsage(started);
  return (user + system) / rows.length;
}

async function measure(
  name: SetName,
  size: 1 | 512,
  what: 'new' | 'replaced',
  logs: 'changes' | 'a view' = 'changes',
): Promise<void> {
  const [logged, plain] = [await open(name, logs), await open(name, 'nothing')];
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
      `${(more * 100).toFixed(1).padStart(5)} %  ${name}, ${what} rows, ${size} in a transaction, log of ${logs}\n`,
  );
}

try {
  printMachine();
  for (const name of ['items', 'a resource'] as const)
    for (const size of [1, 512] as const)
      for (const what of ['new', 'replaced'] as const) await measure(name, size, what);
  for (const name of ['items', 'a resource'] as const) await measure(name, 512, 'replaced', 'a view');
} finally {
  for (const file of files) await file.close();
  rmSync(directory, { recursive: true });
}

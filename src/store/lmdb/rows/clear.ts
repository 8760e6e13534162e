import { randomBytes } from 'node:crypto';
import type { Commits } from '../commits.ts';
import type { ChangeLog } from '../feed/log.ts';
import { HIGHEST, joinKeys, type Key } from '../../keys.ts';
import type { Tables } from '../tables.ts';
import { entriesPrefix, rowsPrefix } from './keyed.ts';
import type { IndexRecord, ResourceRecord, Resources } from './record.ts';
import { countKey, countOf, recordOf } from './write.ts';

/** Keys removed in one transaction: about 10 ms of the event loop. */
const TRANSACTION_KEYS = 5_000;

/**
 * In a transaction: removes all rows of a resource at once. Its record gets another number and identity, so nothing
 * leads to the rows any more, and a chain of reads notices. `sweep` frees their space. Returns how many there were.
 */
export function emptyResource(
  tables: Tables,
  resources: Resources,
  collection: string,
  log: ChangeLog,
): number {
  const record = recordOf(resources, collection);
  const rows = countOf(tables, record);
  tables.meta.removeSync(countKey(record));
  log.forget(record.number);
  resources.putWaste([...resources.waste(), hexOf(rowsPrefix(record))]);
  resources.put({
    ...record,
    number: resources.takeNumber(),
    identity: newIdentity(),
    indexes: record.indexes.map(({ number, paths }): IndexRecord => ({ number, paths, builtTo: null })),
  });
  return rows;
}

export function newIdentity(): string {
  return randomBytes(16).toString('hex');
}

/** In a transaction: begins an index anew that arrays had made unusable. */
export function renewIndex(resources: Resources, record: ResourceRecord, index: IndexRecord): void {
  const number = Math.max(...record.indexes.map((one) => one.number)) + 1;
  const fresh: IndexRecord = { number, paths: index.paths, builtTo: hexOf(rowsPrefix(record)) };
  resources.putWaste([...resources.waste(), hexOf(entriesPrefix(record, index))]);
  resources.put({ ...record, indexes: record.indexes.map((one) => (one === index ? fresh : one)) });
}

/**
 * Frees the space of rows, entries and changes that nothing leads to, in bounded transactions. A kill leaves the rest to the next
 * process that opens the file. Resolves when there is none left, or when `isWanted` returns false.
 */
export async function sweep(
  tables: Tables,
  resources: Resources,
  commits: Pick<Commits, 'run'>,
  isWanted: () => boolean,
): Promise<void> {
  while (isWanted() && resources.waste().length > 0) await commits.run(() => sweepSome(tables, resources));
}

function sweepSome(tables: Tables, resources: Resources): void {
  const [first, ...others] = resources.waste();
  if (first === undefined) return;
  const prefix = Buffer.from(first, 'hex');
  // A longer prefix is that of one index, which has no rows of its own.
  const isIndex = prefix.length > rowsPrefix({ number: 0 }).length;
  if (!isIndex && removeSome(tables, 'rows', prefix, TRANSACTION_KEYS)) return;
  if (!isIndex && removeSome(tables, 'changes', prefix, TRANSACTION_KEYS)) return;
  if (!removeSome(tables, 'entries', prefix, TRANSACTION_KEYS)) resources.putWaste(others);
}

/** In a transaction: removes the first keys with this beginning, at most `most`. Returns whether there were any. */
export function removeSome(
  tables: Tables,
  table: 'rows' | 'entries' | 'changes',
  prefix: Key,
  most: number,
): boolean {
  const keys: Key[] = [];
  tables.prefix = 0;
  const range = { start: prefix, end: joinKeys(prefix, HIGHEST), reverse: false };
  const steps = tables[table].getRange({ ...range, exclusiveStart: false, offset: 0, values: false });
  const iterator = steps[Symbol.iterator]();
  try {
    while (keys.length < most && iterator.next().done !== true) keys.push(tables.found.copied());
  } finally {
    iterator.return?.();
  }
  for (const key of keys) tables[table].removeSync(key);
  return keys.length > 0;
}

function hexOf(key: Key): string {
  return Buffer.from(key).toString('hex');
}

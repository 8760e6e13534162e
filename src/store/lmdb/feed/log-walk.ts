import { HIGHEST, joinKeys } from '../../keys.ts';
import type { Tables } from '../tables.ts';
import { numberOf, recordKey, setKey } from './log-keys.ts';

/**
 * Calls `visit` with each record of a set's log from the one that has this number on, and the number of its last id,
 * until it returns false. Returns whether it reached the end. `visit` must not look at the file.
 *
 * Within a transaction a walk costs about a third of what writing a row costs, because lmdb has to open a cursor.
 */
export function walkLog(
  tables: Tables,
  set: number,
  from: number,
  visit: (end: number, record: Uint8Array) => boolean,
): boolean {
  let record: Uint8Array = new Uint8Array(0);
  tables.prefix = 0;
  tables.sink = { row: (bytes) => (record = bytes) };
  const range = { start: recordKey(set, from), end: joinKeys(setKey(set), HIGHEST), reverse: false };
  const steps = tables.changes.getRange({ ...range, exclusiveStart: false, offset: 0, values: true });
  const iterator = steps[Symbol.iterator]();
  try {
    while (iterator.next().done !== true) if (!visit(numberOf(tables.found), record)) return false;
    return true;
  } finally {
    iterator.return?.();
    tables.sink = null;
  }
}

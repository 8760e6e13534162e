import type { Count } from '../store.ts';
import type { Commits } from './commits.ts';
import { ITEMS, type ChangeLog } from './feed/log.ts';
import { HIGHEST, LOWEST } from '../keys.ts';
import { keyRow } from './row.ts';
import type { KeyedRow } from './row.ts';
import type { Tables } from './tables.ts';
import { COUNT_KEY, countBytes, INDEXES, itemCount, TRANSACTION_BYTES, TRANSACTION_ROWS } from './write.ts';
import type { LoadGate } from './write.ts';

const ALL = { start: LOWEST, end: HIGHEST, reverse: false, exclusiveStart: true, offset: 0, values: true };

/**
 * Removes every item and its index entries, in transactions of at most `most` rows. Each leaves a whole store. Rows that
 * others insert meanwhile are removed too. Each transaction lets all places in the log of changes expire. Waits for a load by another process. Rejects with the signal's reason between two transactions.
 */
export async function clearItems(
  tables: Tables,
  commits: Pick<Commits, 'run'>,
  gate: LoadGate,
  log: ChangeLog,
  signal: AbortSignal,
  most: number = TRANSACTION_ROWS,
): Promise<Count> {
  let rows = 0;
  for (;;) {
    signal.throwIfAborted();
    const removed = await commits.run(() => (gate.isUnderWay ? null : removeSome(tables, log, most)));
    if (removed === null) {
      await gate.untilFree();
      continue;
    }
    if (removed === 0) return { rows, is: 'exact' };
    rows += removed;
  }
}

/** Removes the first rows. Must run in a write transaction. Returns how many rows were removed. */
function removeSome(tables: Tables, log: ChangeLog, most: number): number {
  const rows = firstRows(tables, most);
  for (const row of rows) {
    tables.items.removeSync(row.id);
    for (const index of INDEXES) tables[index].removeSync(row[index]);
  }
  if (rows.length === 0) return 0;
  tables.meta.putSync(COUNT_KEY, countBytes(itemCount(tables.meta) - rows.length));
  log.raiseFloor(ITEMS);
  return rows.length;
}

/** The keys of the first rows. */
function firstRows(tables: Tables, most: number): readonly KeyedRow[] {
  const rows: KeyedRow[] = [];
  let bytes = 0;
  tables.prefix = null;
  tables.sink = {
    row: (document) => {
      const row = keyRow(Uint8Array.from(document)); // the next row overwrites it
      if (typeof row === 'string') throw new Error(`a stored row cannot be read: ${row}`);
      rows.push(row);
      bytes += document.length;
    },
  };
  const steps = tables.items.getRange(ALL)[Symbol.iterator]();
  try {
    while (rows.length < most && bytes < TRANSACTION_BYTES && steps.next().done !== true);
  } finally {
    steps.return?.();
    tables.sink = null;
  }
  return rows;
}

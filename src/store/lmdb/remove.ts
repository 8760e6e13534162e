import type { Bookmark } from '../bookmark.ts';
import type { Commits } from './commits.ts';
import type { LoadGate } from './write.ts';
import { TRANSACTION_ROWS } from './write.ts';

export interface RemoveOptions {
  readonly commits: Pick<Commits, 'run'>;
  readonly gate: LoadGate;
  /** In a transaction: removes the rows with these keys that exist. Returns how many. */
  readonly removeAll: (keys: readonly Bookmark[]) => number;
  /** Rows per transaction, 512 by default. */
  readonly transactionRows?: number | undefined;
}

/** Removes rows in bounded transactions, while nobody loads the set. See RowStore.remove. */
export async function removeRows(
  keys: readonly Bookmark[],
  { commits, gate, removeAll, transactionRows = TRANSACTION_ROWS }: RemoveOptions,
): Promise<number> {
  let rows = 0;
  for (let at = 0; at < keys.length;) {
    const some = keys.slice(at, at + transactionRows);
    const removed = await commits.run(() => (gate.isUnderWay ? null : removeAll(some)));
    if (removed === null) {
      await gate.untilFree();
      continue;
    }
    rows += removed;
    at += some.length;
  }
  return rows;
}

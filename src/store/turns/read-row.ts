import { KEY, keyOf, type Bookmark } from '../bookmark.ts';
import { KEY_INDEX } from '../indexes.ts';
import type { Plan, RowReader } from '../store.ts';

function rowPlan(id: Bookmark): Plan {
  return { sort: KEY, direction: 1, index: KEY_INDEX, equals: [{ path: KEY, value: keyOf(id)._id }] };
}

/** The row that has this key, as a batch of one row. Null when there is none. Rejects as reads do. */
export async function readRow(rows: Pick<RowReader, 'read'>, id: Bookmark, signal: AbortSignal) {
  const batch = await rows.read(rowPlan(id), {}, { rows: 1, bytes: 1 }, signal);
  if (batch.rows > 0) return batch;
  batch.release();
  return null;
}

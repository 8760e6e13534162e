import { placesBetween } from '../../store/values/interpolate-keys.ts';
import { rowsOf, type Batch } from '../../store/batch.ts';
import { KEY } from '../../store/bookmark.ts';
import type { Index } from '../../store/indexes.ts';
import type { Collection, From } from '../../store/store.ts';
import { awaitAtMost, withDeadline } from '../../store/turns/deadline.ts';
import type { Selection } from '../../rows/selection.ts';
import type { Resource } from '../query/resource.ts';
import { RowShape } from './shape.ts';

/** How long a look may take. Milliseconds. */
const LOOK_MS = 10_000;
/** How many rows each place of a sample has, and into how many parts the places divide a set. */
const SAMPLE = { rows: 50, bytes: 512 * 1024 };
const PARTS = 5;

/** What is known of the rows of collections, by what is shown of them, with the last list of indexes. */
const tables = new WeakMap<Collection, LookTable>();
interface LookTable {
  readonly with: readonly Index[];
  readonly of: Map<Selection, Promise<RowShape> | RowShape>;
}

/**
 * What rows look like: those of both ends of a collection, and of a few places between, in the order of ids. They are read
 * once for each list of indexes that the store gives. Rejects as reads do.
 */
export async function rowLook(
  { rows, shown }: Pick<Resource, 'rows' | 'shown'>,
  signal: AbortSignal,
): Promise<RowShape> {
  const { indexes } = await rows.describe(signal);
  let table = tables.get(rows);
  if (table?.with !== indexes) tables.set(rows, (table = { with: indexes, of: new Map() }));
  const known = table.of;
  const found = known.get(shown);
  if (found instanceof RowShape) return found;
  const looking = found ?? withDeadline(LOOK_MS, undefined, (limit) => look(rows, shown, limit));
  if (!found) {
    known.set(shown, looking);
    const forget = () => known.delete(shown);
    // Where there are no rows, some may come at any time.
    looking.then((shape) => (shape.rows > 0 ? known.set(shown, shape) : forget()), forget);
  }
  return awaitAtMost(LOOK_MS, signal, looking);
}

async function look(rows: Collection, shown: Selection, signal: AbortSignal): Promise<RowShape> {
  const shape = new RowShape();
  const read = async (direction: 1 | -1, from: From): Promise<Pick<Batch, 'last' | 'more'>> => {
    const batch = await rows.read({ sort: KEY, direction }, from, SAMPLE, signal);
    try {
      for (const { buffer, byteOffset, length } of rowsOf(batch))
        shape.add(Buffer.from(buffer, byteOffset, length), shown);
      return { last: batch.last, more: batch.more };
    } finally {
      batch.release();
    }
  };
  const first = await read(1, {});
  if (!first.more) return shape;
  const end = await read(-1, {});
  if (!first.last || !end.last) return shape;
  for (const after of placesBetween(first.last, end.last, PARTS) ?? []) await read(1, { after });
  return shape;
}

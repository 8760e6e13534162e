import type { Selection } from '../rows/selection.ts';
import type { Index } from '../store/indexes.ts';
import type { StreamReader } from '../store/readers.ts';
import type { Collection } from '../store/store.ts';
import type { Kind } from './kinds.ts';

/** A named set of rows that can be paged, streamed and partitioned. */
export interface Resource {
  readonly name: string;
  readonly rows: Collection;
  /** The reader of its streams. */
  readonly streams: StreamReader;
  /** What of the rows may leave the server. Nothing else may be used to filter or sort. */
  readonly shown: Selection;
  /** The kinds of fields that the operator declared, by path. */
  readonly kinds: ReadonlyMap<string, Kind>;
  /** The line that makes an index of these fields, for the operator. */
  readonly indexLine: (fields: readonly string[]) => string;
}

/** The columns that every table begins with. */
export const RESOURCE_COLUMNS = ['id'];

/** The indexes of a resource that clients may know of: none that holds a hidden value. */
export async function indexesOf(
  { rows, shown }: Pick<Resource, 'rows' | 'shown'>,
  signal: AbortSignal,
): Promise<readonly Index[]> {
  const all = await rows.indexes(signal);
  return all.filter(({ keys }) => keys.every(({ path }) => shown.leavesWhole(path)));
}

import type { Selection } from '../rows/selection.ts';
import type { Index } from '../store/indexes.ts';
import type { StreamReader } from '../store/readers.ts';
import type { Collection, Equality } from '../store/store.ts';
import type { KindTable } from './kind-table.ts';
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
  /** The kinds that the values of fields have. */
  readonly found: KindTable;
  /** The line that makes an index of these fields, for the operator. */
  readonly indexLine: (fields: readonly string[]) => string;
  /** Makes the reader of streams of other rows in place of `rows`. */
  readonly openStreams: (rows: Collection) => StreamReader;
  /** Present: these are only the rows and fields that a key opens. Nothing may tell of others. */
  readonly scope?: ResourceScope;
}

/** The part of a resource that a key opens. */
export interface ResourceScope {
  /** The values that all rows have. */
  readonly where: readonly Equality[];
}

/** The columns that every table begins with. */
export const RESOURCE_COLUMNS = ['id'];

/**
 * The indexes of a resource that clients may know of: none that holds a hidden value. For a key with a scope they
 * begin with the values of that, which may be hidden themselves.
 */
export async function indexesOf(
  { rows, shown, scope: { where } = { where: [] } }: Pick<Resource, 'rows' | 'shown' | 'scope'>,
  signal: AbortSignal,
): Promise<readonly Index[]> {
  const all = await rows.indexes(signal);
  const own = where.map(({ path }) => path);
  return all.filter(({ keys }) => {
    const first = keys.slice(0, own.length).map(({ path }) => path);
    const begins = first.length === own.length && own.every((path) => first.includes(path));
    return begins && keys.slice(own.length).every(({ path }) => shown.leavesWhole(path));
  });
}

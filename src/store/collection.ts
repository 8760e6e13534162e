import type { Bookmark } from './bookmark.ts';
import type { Index } from './indexes.ts';
import type { Count, Equality, RowStore } from './store.ts';

/** The rows of a resource. */
export interface Collection extends RowStore {
  /**
   * Every index of the collection, also those that no plan may use, with the reason. At most a minute old. Read again
   * when the store refused a hint. The same array until they are read again, so that what is known with them is, too.
   */
  indexes(signal: AbortSignal): Promise<readonly Index[]>;
  /**
   * Whether some row has these values in the first fields of an index. With `bracket` (see ValueRange): and, in the
   * next field of the index, a value of that type bracket. Reads one index entry.
   */
  holds(
    index: Index,
    equals: readonly Equality[],
    bracket: number | undefined,
    signal: AbortSignal,
  ): Promise<boolean>;
  /**
   * The next distinct value of the index's field behind `equals`, greater than `after` in ascending BSON order. Given
   * and returned as a bookmark `{PATH: value}` with the exact bytes. Null: none follows.
   */
  nextValue(
    index: Index,
    equals: readonly Equality[],
    after: Bookmark | null,
    signal: AbortSignal,
  ): Promise<Bookmark | null>;
}

/** A resource whose rows and indexes the commands of its operator write. */
export interface OwnedCollection extends Collection {
  /** Whether indexes are to be added before the rows. Otherwise that is faster after them. */
  readonly indexesFirst: boolean;
  /**
   * Removes every row. Resolves with the number of rows removed when that is durable. The collection is replaced at once
   * by an empty one with the same options and indexes, so readers never find a part of the rows: chains that read the
   * old one reject with `collection-replaced`. When it rejects, some rows may have been removed.
   */
  clear(signal: AbortSignal): Promise<Count>;
  /**
   * Adds an index of these fields and the key, and resolves when it is whole, or cannot be used. Calls `onRows` with
   * numbers of rows that it has taken in. When it is killed or `signal` is aborted, the store goes on by itself.
   * Rejects with CommandRefusal when the store refuses the index.
   */
  addIndex(
    paths: readonly string[],
    onRows: (rows: number) => void,
    signal: AbortSignal,
  ): Promise<AddedIndex>;
}

export interface AddedIndex {
  readonly index: Index;
  /** False: it was there before, and whole. */
  readonly isNew: boolean;
}

/** A collection that the store found. */
export interface Found {
  readonly database: string;
  readonly collection: string;
  /** Why it cannot be served, as the end of a sentence. */
  readonly refused?: string;
}

/** How a collection is made, where stores differ. */
export interface Creation {
  /** Whether its rows are stored in the order of their keys. */
  readonly clustered: boolean;
  /** MongoDB's validator: what the store itself refuses from any writer. */
  readonly validator: Readonly<Record<string, unknown>>;
}

/** A resource as its operator declared it, or as this server has it by itself. */
export interface Declaration {
  readonly name: string;
  /** Absent: the store's own database. */
  readonly database?: string;
  readonly collection: string;
  /** The fields of indexes that are to be made when they are missing and the store may make them. */
  readonly indexes: readonly (readonly string[])[];
  /** How the collection is made when it is missing and the store may make it. Absent: it is never made. */
  readonly create?: Creation;
  /** Why a row (a BSON document) is refused: what was expected and what was found. Null: it is not. Absent: no row is. */
  readonly refusalOf?: (row: Uint8Array) => string | null;
}

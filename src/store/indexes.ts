import { KEY } from './bookmark.ts';

export interface IndexKey {
  /** The path of the field, its names joined by dots. `_id` is the key of a row. */
  readonly path: string;
  /** 1: ascending, -1: descending. */
  readonly sign: 1 | -1;
}

/** An index of a collection, as far as plans depend on it. Sparse and partial indexes are always refused. */
export interface Index {
  readonly name: string;
  readonly keys: readonly IndexKey[];
  /** No two rows have the same values in all its fields. Missing fields count as null. */
  readonly isUnique: boolean;
  /** Why no plan may use it, as the end of a sentence: "it is partial". Absent: plans may use it. */
  readonly refused?: string;
  /** The paths at which it has met arrays, as far as the store shows them. No index over these is used. */
  readonly arrays?: readonly string[];
}

/** The index of the key, which every collection has. */
export const KEY_INDEX: Index = { name: '_id_', keys: [{ path: KEY, sign: 1 }], isUnique: true };

/** The most fields that MongoDB keeps in one index. */
export const MOST_INDEX_FIELDS = 32;

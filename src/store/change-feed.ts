import type { Batch } from './batch.ts';
import type { Bookmark, Identity, PointInTime } from './bookmark.ts';
import type { Plan, Size } from './plan.ts';
import type { ScopePredicate } from './scope/predicate.ts';
import type { Slots } from './turns/slots.ts';

/**
 * A place in the history of a collection, for the cursors of clients. It does not name the collection: a caller that
 * keeps it also keeps the collection's identity, because a store may take the place of another collection for its own.
 */
export interface FeedPlace {
  /** Known to the store only: a resume token or a time (MongoDB), a sequence number (embedded store). */
  readonly token: Uint8Array;
  /**
   * Reads of rows must see at least this time (`Plan.since`), because rows whose keys a reader has are of this time. Absent
   * where rows have one state only.
   */
  readonly seen?: PointInTime;
}

/** The keys of rows that changed between two places. */
export interface ChangedKeys {
  /** Bookmarks `{_id}` of the rows that were inserted, changed or removed, each once. */
  readonly keys: readonly Bookmark[];
  /** The place behind them. It also moves on while nothing changes, so that it does not expire. */
  readonly next: FeedPlace;
  /** Whether `next` was behind every change that was made before the call. */
  readonly isUpToDate: boolean;
  /** Rows of the first keys, where they had to be read to decide on a scope. For `lookUp`. */
  readonly found?: RowsByKey;
}

/** Rows (BSON documents) by the texts of the keys that were asked for (see `textOf`). Each is taken out once. */
export type RowsByKey = Map<string, Uint8Array>;

/** The keys of rows of a whole collection that changed, and which of these rows were in a scope. */
export interface ChangedInScope extends ChangedKeys {
  /** The keys (see `textOf`) of the rows that matched before one of these changes. */
  readonly matchedBefore: ReadonlySet<string>;
}

/**
 * The changes of a whole collection, for a reader that may know a scope of it only: it leaves out the others. Changes of
 * hidden fields alone are left out already.
 */
export interface ScopeLog extends ChangeFeed {
  /** See ChangeFeed. None of its places names a row. Rejects with `forbidden` when `refusal` has a reason. */
  read(...call: Parameters<ChangeFeed['read']>): Promise<ChangedInScope>;
  readonly refusal: (signal: AbortSignal) => Promise<string | null>;
  /** Where batches of its rows lie. */
  readonly slots: Slots;
}

export interface LookUpResult {
  /** How many keys were looked up, at least one. */
  readonly taken: number;
  /**
   * Their rows that exist and have the values of the plan (`equals`), as they are now, not before `plan.since`, all of
   * them, each once, in any order. A key without a row among them is removed or does not fit. A row's key may have
   * another type than the key that changed (7 and 7.0). Null: no rows. The caller releases the batch.
   */
  readonly batch: Batch | null;
}

/** How many changes to read, and how long to wait for the first one. */
export interface FeedSize {
  readonly most: number;
  /** Milliseconds. 0: do not wait. When the time is up, the answer has no keys, and its place has moved on. */
  readonly waitMs: number;
}

/**
 * Which rows of a collection changed. It has keys and not what happened: a reader looks the rows up, and gets
 * their present state. A copy that applies what it gets in the order in which it comes converges.
 *
 * Each method rejects with AppError `store-unavailable` when the store does not answer: the same call may be repeated
 * from the same place. `changes-unsupported` when the collection has no changes (a mongod outside a replica set).
 * An aborted signal rejects with its reason.
 */
export interface ChangeFeed {
  /**
   * The present place. Reads that begin afterwards, with `Plan.since` not before `seen`, see every change before it.
   */
  now(signal: AbortSignal): Promise<FeedPlace>;
  /** The place from which the changes after a snapshot follow. */
  at(time: PointInTime): FeedPlace;
  /** Whether every change before `other` is before `place`, too. Both are places that this feed gave. */
  reaches(place: FeedPlace, other: FeedPlace): boolean;
  /**
   * The changes after a place. Rejects with `changes-expired` when the store no longer has all of them,
   * `collection-replaced` when the collection is not the one of `identity`, and `invalid-cursor` when the token is not
   * one of this store.
   */
  read(
    place: FeedPlace,
    size: FeedSize,
    identity: Identity | undefined,
    signal: AbortSignal,
  ): Promise<ChangedKeys>;
  /**
   * Reads the rows of the first of these keys, of which no two name one row. Rejects with `collection-replaced` when the
   * collection is not that of `plan.identity`. `found`: of the read that gave these keys, whose rows need not be read again.
   */
  lookUp(
    keys: readonly Bookmark[],
    plan: Plan,
    size: Size,
    signal: AbortSignal,
    found?: RowsByKey,
  ): Promise<LookUpResult>;
  /** The changes for the readers of a scope. Missing: the feed is itself one for such readers. */
  within?(scope: ScopePredicate): ScopeLog;
  /** Why the changes of a scope cannot be read at present, in a sentence. Null: they can. */
  readonly refusal?: (signal: AbortSignal) => Promise<string | null>;
}

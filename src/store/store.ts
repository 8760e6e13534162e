import type { Batch } from './batch.ts';
import type { Bookmark, Identity, Ordered, PointInTime } from './bookmark.ts';
import type { FileStore } from './files.ts';

export type { Identity, PointInTime };

/** What is to be read and in which order. Ties in price go by id in the same direction. */
export interface Plan extends Ordered {
  readonly direction: 1 | -1;
  readonly category?: string;
  /**
   * Inclusive bounds of the prices as they are shown, with order `price` only: digits as JSON writes a number, which a
   * Decimal128 holds exactly. See price-range.ts.
   */
  readonly minPrice?: string;
  readonly maxPrice?: string;
  /** Only ids of this range; in ascending order of id only. */
  readonly ids?: IdRange;
  /** The rows as they were at this point in time, in every read of the plan; absent: as they are at each read. */
  readonly at?: PointInTime;
  /**
   * Without `at`: the rows as they were then or later; absent: not before anything that the store was seen to have. A
   * chain names the time of its first batch (`Batch.asOf`): newer than that its rows need not be, and what another
   * member of a replica set has not yet heard of would be waited for, without a primary for an election.
   */
  readonly since?: PointInTime;
  /**
   * Rows of this collection only, in every read of the plan; absent: of the one that has the name now. A chain names that
   * of its first batch (`Batch.identity`), so that its rows are never those of two collections, and a collection that is
   * gone is never taken for one that has ended.
   */
  readonly identity?: Identity;
}

/** Ids from `from`, inclusive, to `to`, exclusive, each `{_id}` and open where it is missing; rows need not have them. */
export interface IdRange {
  readonly from?: Bookmark;
  readonly to?: Bookmark;
}

/** Where reading begins: at the start, after a row (whether it still exists or not), or after so many rows. */
export interface From {
  readonly after?: Bookmark;
  readonly skip?: number;
}

/** How much one batch may hold. A store may give fewer rows with `more: true` once it has `bytes`, but never none. */
export interface Size {
  readonly rows: number;
  readonly bytes: number;
  /** It is a part of something long: where reads wait for one another, one that is all its client asked for goes before. */
  readonly patient?: boolean;
}

/**
 * How rows are counted: `exact` as far as time allows, about 2 s; `estimated` costs no more than a few pages, however many
 * rows there are.
 */
export type CountMode = 'estimated' | 'exact';

export interface Count {
  readonly rows: number;
  /** `atLeast`: counting was given up after so many rows. An estimate is a number of rows like these, no bound. */
  readonly is: 'exact' | 'estimated' | 'atLeast';
}

/** What a write does with an id that is there already. */
export type OnConflict = 'skip' | 'replace' | 'fail';

export interface InsertResult {
  /** Rows new or replaced, durable when the promise resolves. */
  readonly written: number;
  /** Rows left as they were because their id was there (`skip`). */
  readonly skipped: number;
  /** Rows the store refused, by their index in the call, with the reason. With `fail`: also those whose id was there. */
  readonly refused: readonly { readonly index: number; readonly reason: string }[];
}

/**
 * The rows of a collection, to be read. Order is BSON's: types first (number < string < object < binary < ObjectId <
 * boolean < date), numbers by value whatever their type, strings by UTF-8 bytes.
 *
 * - `read` is one short look at the store: nothing stays open in it afterwards, so a reader may take as long as it likes.
 *   Rows not changed between the reads of a chain come exactly once, in order, also when the row of the bookmark was
 *   changed or deleted. Rows delivered are never rolled back later.
 * - Reads of plans with the same `at` see one state of all rows, from whatever process and however long apart. They reject with
 *   AppError `snapshot-expired` when the store has no longer kept that time, `invalid-parameter` when it is ahead of
 *   the store's, and `snapshot-unsupported` where `pointInTime` gives null.
 * - Reads of a plan with an `identity` reject with AppError `collection-replaced` when its collection is gone or has lost its
 *   name. Without one, no read takes a collection that is gone for an empty one: it rejects with a problem of status 503.
 * - When the store does not answer, everything rejects with AppError `store-unavailable`; when it answers but cannot be read
 *   reliably (its collection or an index is gone or unfit, or this server may not read it), with `store-unfit`, and asking
 *   again at once is of no use. An aborted signal rejects with its reason.
 */
export interface RowReader {
  read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<Batch>;
  /**
   * Resolves when what a batch was read by holds every row once, also now, after the batch was read: only then are its rows
   * proved to be all. Rejects as `read` does. (MongoDB: the index was not replaced by a partial one under its name, and no
   * row has an array in its fields.)
   */
  confirm(batch: Pick<Batch, 'readBy'>, plan: Plan, signal: AbortSignal): Promise<void>;
  /** The row whose `_id` equals the bookmark's, as a batch of one row; null when there is none. */
  get(id: Bookmark, signal: AbortSignal): Promise<Batch | null>;
}

/** What a chain needs of a reader. */
export type ChainReader = Pick<RowReader, 'read' | 'confirm'>;

/**
 * The items: rows with `_id`, `category` (string) and `price` (finite number). Implementations: mongo.ts, lmdb.ts;
 * test/store.contract.ts runs on each.
 */
export interface ItemStore extends RowReader {
  /** The collection that has the name now; undefined where collections have no identity. Rejects as reads do. */
  identity(signal: AbortSignal): Promise<Identity | undefined>;
  /** How many rows a plan without `ids` has. Better than asked for when that costs nothing, less exact when time is up: see `is`. */
  count(plan: Plan, mode: CountMode, signal: AbortSignal): Promise<Count>;
  /**
   * Where a plan in ascending order of id falls into `parts` parts of about as many rows: the ids with which the second and
   * all further parts begin, ascending and different; fewer when there are not so many rows.
   */
  split(plan: Plan, parts: number, signal: AbortSignal): Promise<readonly Bookmark[]>;
  /**
   * The present, for `Plan.at`: all that was acknowledged before is in it. The store keeps such a time for some minutes
   * (MongoDB: minSnapshotHistoryWindowInSeconds, 5 by default). null: it keeps none (the embedded store, a mongod
   * that is no replica set).
   */
  pointInTime(signal: AbortSignal): Promise<PointInTime | null>;
  /** Writes BSON documents; resolves when they are durable (w:majority; flushed). */
  insert(rows: readonly Uint8Array[], onConflict: OnConflict): Promise<InsertResult>;
}

/**
 * What becomes of a row: from the document as it is (null: there is none) to what it is to be (null: none), or `keep`. It
 * may throw, which leaves everything as it is. It may be called several times, each time with what is there then, so it
 * must have no effect of its own.
 */
export type Change = (current: Uint8Array | null) => Uint8Array | null | 'keep';

/** The document before and after a change; null: there was, or is, none. */
export interface Changed {
  readonly before: Uint8Array | null;
  readonly after: Uint8Array | null;
}

/**
 * What the server itself writes one by one (users, exports): rows whose `_id` is a string, read in order of id only.
 * Implementations: mongo/records.ts, lmdb/changes.ts; test/users-store.contract.ts runs on each.
 */
export interface RecordStore extends RowReader {
  /**
   * Changes the record of this id in one atomic step: between what `change` saw at its last call and what it made of it
   * nobody else wrote. Resolves with what was there and what is, when that is durable (w:majority; flushed). Rejects
   * with what `change` threw, or as reads do; after `store-unavailable` the change may or may not have been made.
   */
  change(id: string, change: Change): Promise<Changed>;
}

export interface Store {
  readonly name: 'mongodb' | 'lmdb';
  readonly items: ItemStore;
  readonly users: RecordStore;
  readonly exports: RecordStore;
  /** The files of exports. */
  readonly files: FileStore;
  /**
   * What of the items cannot be read at present though the rest can, a sentence each. Rejects with AppError
   * `store-unavailable` when the store does not answer, `store-unfit` with the reason when no item can be read.
   */
  ping(): Promise<readonly string[]>;
  close(): Promise<void>;
}

import type { CommandRefusal } from '../base/errors.ts';
import type { ReadBatch } from './batch.ts';
import type { Bookmark, Identity, PointInTime } from './bookmark.ts';
import type { ChangeFeed, FeedPlace } from './change-feed.ts';
import type { Index } from './indexes.ts';
import type { RowCheck } from './values/row-check.ts';
import type { Count, CountMode, Equality, From, Plan, Size, ValueRange } from './plan.ts';

/**
 * Reads the rows of a collection. Rows are ordered as BSON orders values: by type (number < string < object < binary <
 * ObjectId < boolean < date), numbers by value whatever their type, strings by UTF-8 bytes.
 *
 * - `read` is one short operation. Nothing stays open in the store afterwards, so a reader may take any time between
 *   reads. Rows that do not change between the reads of a chain come exactly once and in order, even when the
 *   bookmark's row was changed or deleted. Rows that were delivered are never rolled back.
 * - Reads of plans with the same `at` see one state of all rows, from any process and at any distance in time. They
 *   reject with AppError `snapshot-expired` when the store no longer keeps that time, `invalid-parameter` when the
 *   time is ahead of the store's, and `snapshot-unsupported` where a description's `now` is null.
 * - Reads of a plan with an `identity` reject with AppError `collection-replaced` when that collection was dropped or
 *   renamed. Without an `identity`, a read never takes a missing collection for an empty one: it rejects with a
 *   problem of status 503.
 * - Every method rejects with AppError `store-unavailable` when the store does not answer. It rejects with
 *   `store-unfit` when the store answers but cannot be read reliably: the collection or an index is missing or unfit,
 *   or this server lacks the permission to read it. An immediate retry does not help then. An aborted signal rejects
 *   with its reason.
 */
export interface RowReader {
  read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<ReadBatch>;
  /** Whether a read may be asked for while the batch before it is still in use. Absent: always. */
  mayReadAhead?(): boolean;
}

/** What one look at a collection finds. */
export interface Description {
  /** Of the collection that has the name now. Undefined where collections have no identity. */
  readonly identity: Identity | undefined;
  /**
   * Every index, also those that no plan may use, with the reason. At most a minute old. Read again when the store refused
   * a hint. The same array until they are read again, so that what is known with them is, too.
   */
  readonly indexes: readonly Index[];
  /**
   * The current time of the store, for `Plan.at`. It includes every write acknowledged before the call. The store
   * keeps such a time for some minutes (MongoDB: minSnapshotHistoryWindowInSeconds, 5 minutes by default). Null: the
   * store keeps no past states (the embedded store, a mongod that is not in a replica set). Absent: it was not asked for.
   */
  readonly now?: PointInTime | null;
}

/** The rows of a resource: read in any order that their indexes have, counted and split. */
export interface Collection extends RowReader {
  /** `wants.now`: also the current time, which costs a read of one row on MongoDB. Rejects as reads do. */
  describe(signal: AbortSignal, wants?: { readonly now: boolean }): Promise<Description>;
  /**
   * The number of rows of a plan without `ids`. `is` is how good the count is: better than `mode` when that costs
   * nothing, less exact when the time is up.
   */
  count(plan: Plan, mode: CountMode, signal: AbortSignal): Promise<Count>;
  /**
   * Splits a plan in ascending order of id into `parts` parts with about the same number of rows. Returns the ids with
   * which the second and all further parts begin, ascending and distinct. Returns fewer when there are not enough
   * rows.
   */
  split(plan: Plan, parts: number, signal: AbortSignal): Promise<readonly Bookmark[]>;
  /**
   * The next distinct value of the index's field behind `equals`, in ascending BSON order. Given and returned as a
   * bookmark `{PATH: value}` with the exact bytes. Null: none follows. Values that no query can name are passed over
   * (MinKey, MaxKey, undefined, regular expressions, DBPointers), and on MongoDB those that no command can carry.
   */
  nextValue(
    index: Index,
    equals: readonly Equality[],
    from: ValuesFrom,
    signal: AbortSignal,
  ): Promise<Bookmark | null>;
  /** The changes of rows. Absent: the store has none. */
  readonly changes?: ChangeFeed | undefined;
  /**
   * One state of all rows, which has every write acknowledged before the call. Absent: the store has none. Rejects as reads
   * do, and with `changes-unsupported` when the collection has no changes. Whoever takes it releases it.
   */
  readonly snapshot?: ((signal: AbortSignal) => Promise<Snapshot>) | undefined;
}

/** One state of all rows, until it is released or the store no longer keeps it. */
export interface Snapshot {
  /** Reads of this state. They reject with `snapshot-expired` when the store no longer keeps it. */
  readonly rows: RowReader;
  /** The place from which the changes after this state follow. */
  readonly place: FeedPlace;
  readonly identity: Identity | undefined;
  /** Ends it. May be called several times. */
  release(): void;
}

/** Where the next value is looked for: greater than `after`, or in a range. Neither: anywhere. */
export interface ValuesFrom {
  readonly after?: Bookmark | null;
  readonly range?: ValueRange;
  /** Called for each stretch of values that is passed over without a range: it has one value or more. */
  readonly onOmitted?: () => void;
}

/** A resource whose rows and indexes the commands of its operator write. */
export interface OwnedCollection extends Collection {
  /** Ends what looks at the collection by itself. The collection must not be used afterwards. */
  close(): void;
  /**
   * Removes the rows with these keys (bookmarks `{_id}`). Resolves with the number of rows removed when that is durable.
   */
  remove(keys: readonly Bookmark[]): Promise<number>;
  /** Writes BSON documents. Resolves when they are durable (w:majority; flushed). */
  insert(rows: readonly Uint8Array[], onConflict: OnConflict): Promise<InsertResult>;
  /**
   * Writes the rows of an import. Rejects with CommandRefusal when another import is in the way, before it asks for a row;
   * as `insert` does when the store fails; and with the error of `rows`.
   *
   * The embedded store fills tables that nothing leads to when the collection has no rows, or when they are to be
   * replaced. One transaction at the end makes them the collection's, so readers see the rows of before until then, and all
   * new ones after; when it rejects, or the process ends before, nothing has changed. MongoDB does so with rows that are
   * replaced. Other rows appear as they come, and stay.
   */
  fill(rows: AsyncIterable<readonly FilledRow[]>, how: HowToFill): Promise<void>;
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
  /** Drops the index of these fields and the key. Rejects with CommandRefusal when there is none, or the store refuses it. */
  removeIndex(paths: readonly string[]): Promise<void>;
  /**
   * Drops the collection with its rows. What reads it ends as where a collection is missing. Rejects with CommandRefusal
   * when an import replaces its rows (embedded store: also when one adds rows), or the store refuses it. The collection
   * must not be used afterwards.
   */
  drop(): Promise<void>;
  /** Gives the collection a name that none has. Its rows and their history stay. Rejects as `drop` does. */
  rename(to: string): Promise<void>;
}

export interface AddedIndex {
  readonly index: Index;
  /** False: it was there before, and whole. */
  readonly isNew: boolean;
}

/** What a write does with a row whose id already exists. */
export type OnConflict = 'skip' | 'replace' | 'fail';

export interface InsertResult {
  /**
   * Number of rows inserted or replaced. They are durable when the promise resolves. One that is replaced by the same bytes
   * counts, and is no change.
   */
  readonly written: number;
  /** Number of rows left unchanged because their id already exists (`skip`). */
  readonly skipped: number;
  /**
   * The rows that the store refused, by index in the call, with the reason. With `fail`: also rows whose id already
   * exists.
   */
  readonly refused: readonly { readonly index: number; readonly reason: string }[];
}

/** Called for each row that a store refuses, with the number that the caller gave it, and the reason. */
type Refuse = (at: number, reason: string) => void;

/** A row of a source (a BSON document that must not change any more), and its place there: higher than those before it. */
export interface FilledRow {
  readonly at: number;
  readonly item: Uint8Array;
}

export interface HowToFill {
  readonly onConflict: OnConflict;
  readonly refuse: Refuse;
  /** Present: the rows take the place of those that are there. Called with the number of these when they are removed. */
  readonly onRemoved?: ((removed: Count) => void) | undefined;
  /** Whether the rows may never end. They then appear as they come, with all their indexes. */
  readonly isEndless?: boolean | undefined;
  /** Called with numbers of rows that have become durable and visible. */
  readonly onWritten: (result: Pick<InsertResult, 'written' | 'skipped'>) => void;
  /** Indexes to be added (the fields of each, without the key), where that is fastest: before the rows or after them. */
  readonly indexes?: readonly (readonly string[])[] | undefined;
  /** Called for each of them, or with the reason why the store refuses it. */
  readonly onIndex?: ((added: AddedIndex | CommandRefusal) => void) | undefined;
  /** Called when reads that need an index reject until the rows are there. */
  readonly onPostponed?: (() => void) | undefined;
  readonly signal: AbortSignal;
}

/** What a look at a database finds. */
export interface Listing {
  readonly collections: readonly CollectionEntry[];
  /** Whether no process that had the store open has ended in order yet: the first start makes it. Absent: no. */
  readonly isNew?: boolean;
}

export interface CollectionEntry {
  readonly database: string;
  readonly collection: string;
  /** Why it cannot be served, as the end of a sentence. */
  readonly refused?: string;
  /** Present where the store itself keeps it, so that every start serves the collection. */
  readonly declaration?: Declaration;
  /** It is there for rows that have not come yet, and is not served by itself before. */
  readonly isUnfilled?: boolean;
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
  /** The fields of indexes that the store makes when they are missing and it may make them. */
  readonly indexes: readonly (readonly string[])[];
  /**
   * How the collection is made when it is missing and the store may make it: this server keeps it for itself, and the
   * embedded store does not serve it to others before it has a row. Absent: a store of others never makes it.
   */
  readonly create?: Creation;
  /** What its rows must have. Absent: nothing. */
  readonly check?: RowCheck;
  /** Called with a line for each thing that `open` makes because it may. */
  readonly onMade?: (line: string) => void;
}

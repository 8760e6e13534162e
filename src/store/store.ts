import type { Batch, ReadBatch } from './batch.ts';
import type { ChangeFeed } from './change-feed.ts';
import type { Bookmark, Identity, PointInTime } from './bookmark.ts';
import type { AddedIndex, Collection, Declaration, Found, OwnedCollection } from './collection.ts';
import type { RecordDeclaration, Records } from './records.ts';
import type { FileStore } from './files.ts';
import type { Count, CountMode, Equality, From, IdRange, Plan, Size } from './plan.ts';

export type { AddedIndex, Collection, Declaration, Found, Identity, OwnedCollection, PointInTime };
export type { Count, CountMode, Equality, From, IdRange, Plan, Size };

/** What a write does with a row whose id already exists. */
export type OnConflict = 'skip' | 'replace' | 'fail';

export interface InsertResult {
  /** Number of rows inserted or replaced. They are durable when the promise resolves. */
  readonly written: number;
  /** Number of rows left unchanged because their id already exists (`skip`). */
  readonly skipped: number;
  /**
   * The rows that the store refused, by index in the call, with the reason. With `fail`: also rows whose id already
   * exists.
   */
  readonly refused: readonly { readonly index: number; readonly reason: string }[];
}

/**
 * Reads the rows of a collection. Rows are ordered as BSON orders values: by type (number < string < object < binary <
 * ObjectId < boolean < date), numbers by value whatever their type, strings by UTF-8 bytes.
 *
 * - `read` is one short operation. Nothing stays open in the store afterwards, so a reader may take any time between
 *   reads. Rows that do not change between the reads of a chain come exactly once and in order, even when the
 *   bookmark's row was changed or deleted. Rows that were delivered are never rolled back.
 * - Reads of plans with the same `at` see one state of all rows, from any process and at any distance in time. They
 *   reject with AppError `snapshot-expired` when the store no longer keeps that time, `invalid-parameter` when the
 *   time is ahead of the store's, and `snapshot-unsupported` where `pointInTime` returns null.
 * - Reads of a plan with an `identity` reject with AppError `collection-replaced` when that collection was dropped or
 *   renamed. Without an `identity`, a read never takes a missing collection for an empty one: it rejects with a
 *   problem of status 503.
 * - Every method rejects with AppError `store-unavailable` when the store does not answer. It rejects with
 *   `store-unfit` when the store answers but cannot be read reliably: the collection or an index is missing or unfit,
 *   or this server lacks the permission to read it. An immediate retry does not help then. An aborted signal rejects
 *   with its reason.
 */
export interface RowReader {
  read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<Batch>;
  /**
   * Resolves when what a batch was read by (`readBy`, such as an index) is proved to hold every row exactly once, also
   * now, after the batch was read. Only then is the batch proved complete. Rejects as `read` does. (MongoDB: the index
   * was not replaced by a partial index of the same name, no row has an array in an indexed field, and none lies where bounds end.)
   */
  confirm(batch: ReadBatch, plan: Plan, signal: AbortSignal): Promise<void>;
}

/** The part of a reader that a chain uses. */
export type ChainReader = Pick<RowReader, 'read' | 'confirm'>;

/** Rows that can be read in any order that their indexes have, counted, split and added to. */
export interface RowStore extends RowReader {
  /**
   * The identity of the collection that has the name now. Undefined where collections have no identity. Rejects as
   * reads do.
   */
  identity(signal: AbortSignal): Promise<Identity | undefined>;
  /**
   * The number of rows of a plan without `ids`. `is` says how good the count is: better than `mode` when that costs
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
   * The current time of the store, for `Plan.at`. It includes every write acknowledged before the call. The store
   * keeps such a time for some minutes (MongoDB: minSnapshotHistoryWindowInSeconds, 5 minutes by default). Null: the
   * store keeps no past states (the embedded store, a mongod that is not in a replica set).
   */
  pointInTime(signal: AbortSignal): Promise<PointInTime | null>;
  /** Returns which rows changed. */
  readonly changes?: ChangeFeed | undefined;
  /**
   * Removes the rows with these keys (bookmarks `{_id}`). Resolves with the number of rows removed when that is durable.
   */
  remove?(keys: readonly Bookmark[]): Promise<number>;
  /** Writes BSON documents. Resolves when they are durable (w:majority; flushed). */
  insert(rows: readonly Uint8Array[], onConflict: OnConflict): Promise<InsertResult>;
  /**
   * Begins to fill an empty collection faster than `insert` does. Resolves with null when it has rows, or when another
   * process is filling it. With `replaces`, the rows that it has are removed first, after a load by another process has
   * ended: never null. Missing: the store has no faster way.
   */
  load?(onConflict: OnConflict, refuse: Refuse, replaces?: boolean): Promise<Load | null>;
  /**
   * Drops the indexes of an empty collection, so that inserts cost less. Resolves with a function that makes them, to be
   * called when the rows are there. Null when the collection has rows, or when no one would make the indexes after a
   * crash. Reads that need an index reject meanwhile. This process is to read nothing. Missing: the store has no need.
   */
  postponeIndexes?(): Promise<(() => Promise<void>) | null>;
}

/** Called for each row that a store refuses, with the number that the caller gave it, and the reason. */
export type Refuse = (at: number, reason: string) => void;

export interface LoadResult {
  /** Number of rows inserted or replaced. They are durable. */
  readonly written: number;
  /** Number of rows left out because an earlier one has their id (`skip`). */
  readonly skipped: number;
}

/**
 * Fills an empty collection. In the embedded store its rows appear all at once, with all their index entries, when
 * `finish` resolves; until then every read rejects with `not-ready`. When the process ends before, the collection is
 * empty.
 */
export interface Load {
  /** The rows that were there, of a load that replaces them. */
  readonly removed: Count;
  /**
   * Adds a BSON document, which must not change until the load has ended. `at` is its place in the source: higher than
   * those before it. When it returns a promise, the next row must wait for that. Rejects as `insert` does.
   */
  add(row: Uint8Array, at: number): void | Promise<void>;
  /** Resolves when all rows are durable and visible. Rejects as `insert` does; only `abandon` may follow then. */
  finish(): Promise<LoadResult>;
  /** Takes out all rows. */
  abandon(): Promise<void>;
}

export interface Store {
  readonly name: 'mongodb' | 'sqlite';
  /**
   * Whether the store itself keeps the declarations of the resources that `make` makes, so that every start serves them
   * under their names. Otherwise the operator's settings name its collections, see Declaration.
   */
  readonly keepsDeclarations: boolean;
  /** Whether the collections that `make` opens have `load`. */
  readonly loads: boolean;
  /** The collection that the store was opened with. test/contracts/store.contract.ts runs on both stores. */
  readonly items: OwnedCollection;
  /** The files that exports produce. */
  readonly files: FileStore;
  /**
   * Opens an existing collection for reads. Also resolves while the store does not answer: each method then rejects
   * with `store-unavailable`. Rejects with an error for the operator when the collection cannot be served.
   */
  open(declaration: Declaration): Promise<Collection>;
  /**
   * Opens a collection that this server itself writes. Also resolves while the store does not answer, and when the
   * collection is one of another program: each method then rejects with the reason.
   */
  records(declaration: RecordDeclaration): Promise<Records>;
  /**
   * Opens a collection for a command that writes it. Makes it when it is missing. Calls `report` with a line for each
   * thing that was made. Rejects with CommandRefusal when it cannot be a resource.
   */
  make(declaration: Declaration, report: (line: string) => void): Promise<OwnedCollection>;
  /**
   * The collections of a database that the store has, also those that cannot be served. Absent: of its own database.
   */
  list(database?: string): Promise<readonly Found[]>;
  /** The resources whose declarations the store itself keeps. */
  declared(): Promise<readonly Declaration[]>;
  /**
   * Returns the reads of items that currently fail although others work, one sentence each. Rejects with AppError
   * `store-unavailable` when the store does not answer, and with `store-unfit` and the reason when no item can be
   * read.
   */
  ping(): Promise<readonly string[]>;
  /** The size of the write-ahead log beside the store's file. Absent: it has none here. */
  logBytes?(): number;
  close(): Promise<void>;
}

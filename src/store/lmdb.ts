import { join } from 'node:path';
import { noSuchPlace, snapshotUnsupported, StoreLostError, storeUnavailable } from '../errors.ts';
import { assertWritable, Directory } from './directory.ts';
import type { FileStore } from './files.ts';
import { Commits } from './lmdb/commits.ts';
import { commitFault, storeFault } from './lmdb/errors.ts';
import { checkFormat, FORMAT_KEY } from './lmdb/format.ts';
import { hearFailures, isPanic } from './lmdb/failures.ts';
import { assertOpenable } from './lmdb/openable.ts';
import { LmdbItems } from './lmdb/items.ts';
import { openFile, tablesOf, type LmdbFile } from './lmdb/file.ts';
import { LmdbReader } from './lmdb/read.ts';
import type { Tables } from './lmdb/tables.ts';
import { FairScheduler } from './lmdb/fair-scheduler.ts';
import { LmdbFeeds } from './lmdb/feed/feeds.ts';
import { ChangeLog } from './lmdb/feed/log.ts';
import { LmdbChanges } from './lmdb/changes.ts';
import { toldCollection } from './lmdb/rows/collection.ts';
import { LmdbResources } from './lmdb/rows/resources.ts';
import type { Slots } from './slots.ts';
import type { Collection, Declaration, Found, ItemStore } from './store.ts';
import type { OwnedCollection, RecordStore, RowReader, Store } from './store.ts';

/** The store's file. lmdb keeps `items.mdb-lock` beside it. */
export const FILE = 'items.mdb';

const CHANGES_TTL_MS = 7 * 24 * 60 * 60_000;

export interface LmdbOptions {
  /** The directory of the store's file. It is created when missing. */
  readonly directory: string;
  readonly slots: Slots;
  /**
   * Rows per transaction. More rows are faster but block the event loop longer (512: 10 ms), so raise this for imports
   * only.
   */
  readonly transactionRows?: number;
  /**
   * Called once when this process can never use the store again. The process must exit at once, without closing the
   * store.
   */
  readonly onLost?: (error: StoreLostError) => void;
  /** Told in a sentence what went wrong while nobody waited for it. By default nobody is told. */
  readonly onWarning?: (message: string) => void;
  /** A clock in milliseconds. */
  readonly now?: () => number;
  /** A clock in milliseconds since 1970. */
  readonly wallClock?: () => number;
  /** How long changes are kept for readers of the feed, in milliseconds. 7 days by default. */
  readonly changesTtlMs?: number;
  /** The most changes that are kept of a set with few rows, 1,000,000 by default. */
  readonly mostChanges?: number;
}

/**
 * Opens the embedded store and creates it when there is none. Several processes may have it open. Rejects with an
 * Error that says what is wrong when the directory cannot be written or the file is not one of ours.
 */
export async function openLmdb(options: LmdbOptions): Promise<Store> {
  await assertOpenable(options.directory, FILE);
  await assertWritable(join(options.directory, 'exports'));
  const path = join(options.directory, FILE);
  const root = openFile(path);
  try {
    checkFormat(root, path);
    const store = new LmdbStore(root, tablesOf(root), options);
    await store.recover();
    return store;
  } catch (error) {
    await root.close();
    throw error;
  }
}

class LmdbStore implements Store {
  readonly name = 'lmdb';
  readonly keepsDeclarations = true;
  readonly loads = true;
  readonly items: ItemStore;
  readonly users: RecordStore;
  readonly exports: RecordStore;
  readonly files: FileStore;
  readonly #root: LmdbFile;
  readonly #tables: Tables;
  readonly #items: LmdbItems;
  readonly #resources: LmdbResources;
  readonly #changes: readonly LmdbChanges[];
  readonly #feeds: LmdbFeeds;
  readonly #now: () => number;
  readonly #onLost: (error: StoreLostError) => void;
  #isOpen = true;
  #lost: StoreLostError | null = null;

  constructor(root: LmdbFile, tables: Tables, options: LmdbOptions) {
    const { directory, slots, transactionRows, onLost, now = () => performance.now() } = options;
    const onWarning = options.onWarning ?? (() => undefined);
    this.#now = now;
    const log = new ChangeLog(tables, {
      ttlMs: options.changesTtlMs ?? CHANGES_TTL_MS,
      now: options.wallClock ?? Date.now,
      mostIds: options.mostChanges,
    });
    this.#onLost = onLost ?? (() => undefined);
    this.files = new Directory(join(directory, 'exports'));
    this.#root = root;
    this.#tables = tables;
    const commits = new Commits(root, {
      check: () => this.#check(),
      faultOf: async (error) => this.#lossBy(error) ?? (await commitFault(error, directory)),
      onLost: (failure) => this.#lose(failure),
      onCommitted: () => this.#feeds.committed(),
    });
    hearFailures(root, (failure) => commits.failed(failure));
    const scheduler = new FairScheduler();
    const told = <T>(work: Promise<T>): Promise<T> => this.#told(work);
    const begin = (): void => this.#begin();
    const shared = { tables, slots, scheduler, begin, now: this.#now, onWarning };
    this.#feeds = new LmdbFeeds({ ...shared, log, told, commits });
    const writing = { ...shared, commits, feeds: this.#feeds, transactionRows };
    this.#resources = new LmdbResources({ ...writing, directory: join(directory, 'load') });
    this.#items = new LmdbItems({ ...writing, directory, told, portOf: (reader) => this.#portOf(reader) });
    this.items = this.#items.port;
    const readerFor = (rows: 'users' | 'exports') => new LmdbReader(tables, rows, slots, scheduler, begin);
    const [users, records] = [
      new LmdbChanges(tables.users, commits),
      new LmdbChanges(tables.exports, commits),
    ];
    this.#changes = [users, records];
    this.users = { ...this.#portOf(readerFor('users')), change: (...call) => users.change(...call) };
    this.exports = { ...this.#portOf(readerFor('exports')), change: (...call) => records.change(...call) };
  }

  /** Undoes a load whose process has ended. To be called before the first read. */
  async recover(): Promise<void> {
    await this.#items.recover();
    this.#resources.sweepLater();
    this.#feeds.pruneLater(() => [this.#items.logged, ...this.#resources.logs()]);
  }

  open(declaration: Declaration): Promise<Collection> {
    return this.#told(this.#resources.open(declaration)).then((rows) =>
      toldCollection(rows, (work) => this.#told(work)),
    );
  }

  make(...call: Parameters<Store['make']>): Promise<OwnedCollection> {
    return this.#told(this.#resources.make(...call));
  }

  list(): Promise<readonly Found[]> {
    return this.#told(Promise.resolve().then(() => this.#resources.list()));
  }

  declared(): Promise<readonly Declaration[]> {
    return this.#told(Promise.resolve().then(() => this.#resources.declared()));
  }

  async ping(): Promise<readonly string[]> {
    await this.#told(Promise.resolve().then(() => this.#check()));
    return [];
  }

  /** Completes the writes already requested. A lost store is not closed: its environment would no longer answer. */
  async close(): Promise<void> {
    if (!this.#isOpen) return;
    await this.#items.idle();
    await this.#resources.close();
    await this.#feeds.stop();
    await Promise.all(this.#changes.map((changes) => changes.idle()));
    if (this.#lost) return;
    await this.ping(); // throws when the store is lost by now: its environment would not answer either
    this.#isOpen = false;
    this.#feeds.close();
    await this.#root.close();
  }

  /**
   * Called before each read. lmdb keeps a snapshot until a timer fires, but a read must see every commit, also of
   * other processes.
   */
  #begin(): void {
    if (this.#lost) throw this.#lost;
    if (!this.#isOpen) throw storeUnavailable(new Error('the embedded store is closed'));
    this.#root.resetReadTxn();
  }

  /** After an I/O error that leaves LMDB in doubt about its file, LMDB refuses all reads. */
  #check(): void {
    this.#begin();
    if (!this.#tables.meta.getBinary(FORMAT_KEY)) throw storeUnavailable(new Error('the format is gone'));
  }

  /** The loss that this error means, or that happened earlier. Null when the store can still be used. */
  #lossBy(error: unknown): StoreLostError | null {
    if (isPanic(error)) this.#lose(error);
    return this.#lost;
  }

  #lose(cause: Error): void {
    if (this.#lost) return;
    this.#lost = new StoreLostError(cause);
    this.#feeds.close();
    this.#onLost(this.#lost);
  }

  async #told<T>(looking: Promise<T>): Promise<T> {
    try {
      return await looking;
    } catch (error) {
      throw this.#lossBy(error) ?? storeFault(error);
    }
  }

  #portOf(reader: LmdbReader): RowReader {
    return {
      read: async (plan, ...call) => {
        if (plan.at !== undefined) throw snapshotUnsupported();
        if (plan.since !== undefined) throw noSuchPlace(); // only MongoDB has such times
        return this.#told(reader.read(plan, ...call));
      },
      confirm: () => Promise.resolve(), // indexes are written with the rows and cannot be replaced
      get: (...call) => this.#told(reader.get(...call)),
    };
  }
}

import { join } from 'node:path';
import { open } from 'lmdb';
import type { RootDatabase } from 'lmdb';
import { snapshotUnsupported, StoreLostError, storeUnavailable } from '../errors.ts';
import type { Bookmark } from './bookmark.ts';
import { Directory } from './directory.ts';
import type { FileStore } from './files.ts';
import { clearItems } from './lmdb/clear.ts';
import { Commits } from './lmdb/commits.ts';
import { ItemCounts } from './lmdb/count-items.ts';
import { commitFault, storeFault } from './lmdb/errors.ts';
import { checkFormat, FORMAT_KEY } from './lmdb/format.ts';
import { hearFailures, isPanic } from './lmdb/failures.ts';
import { assertOpenable } from './lmdb/openable.ts';
import { itemsTarget } from './lmdb/load/items.ts';
import { Loads } from './lmdb/load/loads.ts';
import { LoadMark } from './lmdb/load/mark.ts';
import { LmdbReader } from './lmdb/read.ts';
import { Tables } from './lmdb/tables.ts';
import type { Database } from './lmdb/tables.ts';
import { FairScheduler } from './lmdb/fair-scheduler.ts';
import { LmdbFeeds } from './lmdb/feed/feeds.ts';
import { ChangeLog, ITEMS } from './lmdb/feed/log.ts';
import { removeItems } from './lmdb/remove-items.ts';
import { removeRows } from './lmdb/remove.ts';
import { keyOfId } from './lmdb/row.ts';
import { LmdbChanges } from './lmdb/changes.ts';
import { toldCollection } from './lmdb/rows/collection.ts';
import { LmdbResources } from './lmdb/rows/resources.ts';
import { itemCount, LmdbWriter } from './lmdb/write.ts';
import type { Slots } from './slots.ts';
import type { Collection, Declaration, Found, ItemStore } from './store.ts';
import type { OwnedCollection, RecordStore, RowReader, Store } from './store.ts';
import { reasonOf } from '../thrown.ts';

/** The store's file. lmdb keeps `items.mdb-lock` beside it. */
export const FILE = 'items.mdb';

/** Address space to reserve: neither memory nor disk. Only a larger file makes lmdb map it again when needed. */
const MAP_BYTES = 64 * 2 ** 30;
const HAS_SPARE_ADDRESSES = process.platform !== 'win32' && !['arm', 'ia32'].includes(process.arch);
/** One for each process and thread that reads at a time. The default of 126 is less than WORKERS may need. */
const MOST_READERS = 512;
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
}

/**
 * Opens the embedded store and creates it when there is none. Several processes may have it open. Rejects with an
 * Error that says what is wrong when the directory cannot be written or the file is not one of ours.
 */
export async function openLmdb(options: LmdbOptions): Promise<Store> {
  await assertOpenable(options.directory, FILE);
  const path = join(options.directory, FILE);
  const root = openFile(path);
  try {
    checkFormat(root, path);
    const tables = new Tables((name, shape) => root.openDB({ name, ...shape }) as unknown as Database);
    const store = new LmdbStore(root, tables, options);
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
  readonly #root: RootDatabase;
  readonly #tables: Tables;
  readonly #writer: LmdbWriter;
  readonly #loads: Loads;
  readonly #resources: LmdbResources;
  readonly #changes: readonly LmdbChanges[];
  readonly #feeds: LmdbFeeds;
  readonly #commits: Commits;
  readonly #now: () => number;
  readonly #onLost: (error: StoreLostError) => void;
  #isOpen = true;
  #lost: StoreLostError | null = null;

  constructor(root: RootDatabase, tables: Tables, options: LmdbOptions) {
    const { directory, slots, transactionRows, onLost, now = () => performance.now() } = options;
    const onWarning = options.onWarning ?? (() => undefined);
    this.#now = now;
    const log = new ChangeLog(tables, {
      ttlMs: options.changesTtlMs ?? CHANGES_TTL_MS,
      now: options.wallClock ?? Date.now,
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
    this.#commits = commits;
    hearFailures(root, (failure) => commits.failed(failure));
    const mark = new LoadMark(tables.meta, 'items');
    const loads = new Loads({
      ...{ target: itemsTarget(tables, log), mark, commits, begin: () => this.#begin() },
      directory: join(directory, 'load'),
    });
    this.#loads = loads;
    this.#writer = new LmdbWriter(tables, commits, loads, log, transactionRows);
    const scheduler = new FairScheduler();
    const beginOf = (rows: 'items' | 'users' | 'exports') => () => {
      this.#begin();
      if (rows === 'items') loads.assertWhole();
    };
    const readerFor = (rows: 'items' | 'users' | 'exports') =>
      new LmdbReader(tables, rows, slots, scheduler, beginOf(rows));
    const shared = { tables, slots, scheduler, begin: () => this.#begin(), now: this.#now, onWarning };
    const told = <T>(work: Promise<T>): Promise<T> => this.#told(work);
    this.#feeds = new LmdbFeeds({ ...shared, log, told });
    const own = { commits, feeds: this.#feeds, transactionRows, directory: join(directory, 'load') };
    this.#resources = new LmdbResources({ ...shared, ...own });
    const itemSet = {
      rows: tables.items,
      present: () => {
        this.#begin();
        return { number: ITEMS };
      },
      assertWhole: () => loads.assertWhole(),
      keyOfId,
      checkPlan: () => undefined,
    };
    const removing = {
      ...{ commits, gate: loads, transactionRows },
      removeAll: (keys: readonly Bookmark[]) => removeItems(tables, log, keys),
    };
    const items = readerFor('items');
    const counts = new ItemCounts(tables, items, beginOf('items'), this.#now);
    this.items = {
      ...this.#portOf(items),
      count: (...call) => this.#told(counts.count(...call)),
      split: (...call) => this.#told(counts.split(...call)),
      identity: () => Promise.resolve(undefined),
      // An open transaction would keep its state, and so prevent the reuse of every page: the file would grow while it
      // is open.
      pointInTime: () => Promise.resolve(null),
      insert: (...call) => this.#writer.insert(...call),
      load: (...call) => loads.load(...call),
      clear: (signal) => clearItems(tables, commits, loads, log, signal, transactionRows),
      remove: (keys) => removeRows(keys, removing),
      changes: this.#feeds.of(itemSet),
    };
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
    if (!(await this.#loads.recover())) this.#loads.watch();
    this.#resources.sweepLater();
    const items = () => ({ set: ITEMS, rows: itemCount(this.#tables.meta) });
    this.#feeds.pruneLater(() => [items(), ...this.#resources.logs()], this.#commits);
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
    await this.#writer.idle();
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
      read: (plan, ...call) =>
        plan.at === undefined
          ? this.#told(reader.read(plan, ...call))
          : Promise.reject(snapshotUnsupported()),
      confirm: () => Promise.resolve(), // indexes are written with the rows and cannot be replaced
      get: (...call) => this.#told(reader.get(...call)),
    };
  }
}

function openFile(path: string): RootDatabase {
  try {
    return open({
      path,
      noSubdir: true,
      encoding: 'binary',
      keyEncoding: 'binary',
      // Windows and 32-bit systems have no address space to spare: there lmdb grows its map step by step.
      ...(HAS_SPARE_ADDRESSES && { mapSize: MAP_BYTES }),
      // Transactions are explicit here. With this option, a failed commit also rejects a promise that no code can
      // reach.
      eventTurnBatching: false,
      // With this option, LMDB holds a second lock during a sync. When its owner is killed, the next owner may take
      // its own transaction for the dead one's, and its environment is lost (`mdb_mutex_failed`). Each commit is
      // awaited here, so none overlap.
      overlappingSync: false,
      maxReaders: MOST_READERS,
      maxDbs: 16,
    });
  } catch (error) {
    throw new Error(`${path} cannot be opened as the embedded store: ${reasonOf(error)}`, { cause: error });
  }
}

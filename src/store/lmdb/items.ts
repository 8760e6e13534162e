import { join } from 'node:path';
import type { Bookmark } from '../bookmark.ts';
import type { Slots } from '../slots.ts';
import type { ItemStore, RowReader } from '../store.ts';
import { clearItems } from './clear.ts';
import type { Commits } from './commits.ts';
import { ItemCounts } from './count-items.ts';
import type { FairScheduler } from './fair-scheduler.ts';
import type { LmdbFeeds, LoggedSet } from './feed/feeds.ts';
import { ITEMS } from './feed/log.ts';
import { itemsTarget } from './load/items.ts';
import { Loads } from './load/loads.ts';
import { LoadMark } from './load/mark.ts';
import { LmdbReader } from './read.ts';
import { removeItems } from './remove-items.ts';
import { removeRows } from './remove.ts';
import { keyOfId } from './row.ts';
import type { Tables } from './tables.ts';
import { itemCount, LmdbWriter } from './write.ts';

export interface LmdbItemsOptions {
  readonly tables: Tables;
  readonly commits: Commits;
  readonly feeds: LmdbFeeds;
  readonly slots: Slots;
  readonly scheduler: FairScheduler;
  /** Rows per transaction, 512 by default. */
  readonly transactionRows?: number | undefined;
  /** For temporary files of loads. */
  readonly directory: string;
  /** Called before each look at the file. Throws when it cannot be read. */
  readonly begin: () => void;
  readonly now: () => number;
  /** Translates the errors of lmdb. */
  readonly told: <T>(work: Promise<T>) => Promise<T>;
  /** A reader with errors of lmdb translated. */
  readonly portOf: (reader: LmdbReader) => RowReader;
}

/** The items of the embedded store. */
export class LmdbItems {
  readonly port: ItemStore;
  readonly #tables: Tables;
  readonly #loads: Loads;
  readonly #writer: LmdbWriter;

  constructor(options: LmdbItemsOptions) {
    const { tables, commits, feeds, transactionRows, begin, told } = options;
    const { log } = feeds;
    const loads = new Loads({
      ...{ target: itemsTarget(tables, log), mark: new LoadMark(tables.meta, 'items'), commits, begin },
      directory: join(options.directory, 'load'),
    });
    const beginRead = (): void => {
      begin();
      loads.assertWhole();
    };
    const reader = new LmdbReader(tables, 'items', options.slots, options.scheduler, beginRead);
    const counts = new ItemCounts(tables, reader, beginRead, options.now);
    const writer = new LmdbWriter(tables, commits, loads, log, transactionRows);
    const removing = {
      ...{ commits, gate: loads, transactionRows },
      removeAll: (keys: readonly Bookmark[]) => removeItems(tables, log, keys),
    };
    const changes = feeds.of({
      rows: tables.items,
      present: () => {
        begin();
        return { number: ITEMS };
      },
      assertWhole: () => loads.assertWhole(),
      keyOfId,
      checkPlan: () => undefined,
    });
    this.#tables = tables;
    this.#loads = loads;
    this.#writer = writer;
    this.port = {
      ...options.portOf(reader),
      count: (...call) => told(counts.count(...call)),
      split: (...call) => told(counts.split(...call)),
      identity: () => Promise.resolve(undefined),
      // An open transaction would keep its state, and so prevent the reuse of every page: the file would grow while it
      // is open.
      pointInTime: () => Promise.resolve(null),
      insert: (...call) => writer.insert(...call),
      load: (...call) => loads.load(...call),
      clear: (signal) => clearItems(tables, commits, loads, log, signal, transactionRows),
      remove: (keys) => removeRows(keys, removing),
      changes,
    };
  }

  /** For the log of changes. */
  get logged(): LoggedSet {
    return { set: ITEMS, rows: itemCount(this.#tables.meta) };
  }

  /** Undoes a load whose process has ended. */
  async recover(): Promise<void> {
    if (!(await this.#loads.recover())) this.#loads.watch();
  }

  /** Resolves when no write is under way. */
  idle(): Promise<void> {
    return this.#writer.idle();
  }
}

import type { Commits } from '../commits.ts';
import type { FairScheduler } from '../fair-scheduler.ts';
import type { LmdbFeeds, LoggedSet } from '../feed/feeds.ts';
import { LmdbReader } from '../read.ts';
import { removeRows } from '../remove.ts';
import type { Tables } from '../tables.ts';
import type { Slots } from '../../slots.ts';
import type { AddedIndex, Collection, Count, Declaration, Found, OwnedCollection } from '../../store.ts';
import { Loads } from '../load/loads.ts';
import { LoadMark } from '../load/mark.ts';
import { buildIndexes } from './build.ts';
import { IndexBuilds } from './builds.ts';
import { emptyResource, renewIndex } from './clear.ts';
import { lmdbCollection } from './collection.ts';
import { missingIndexes, storeDeclaration } from './declare.ts';
import { resourceFeedSet } from './feed-set.ts';
import { keyOfRow, rowsPrefix } from './keyed.ts';
import { resourceTarget } from './load-target.ts';
import { rangesOf } from './range.ts';
import { identityOf, indexOf, isInBuilding, nameOf, Resources } from './record.ts';
import type { IndexRecord, ResourceRecord } from './record.ts';
import { removeFromResource } from './remove.ts';
import { Sweeper } from './sweeper.ts';
import { ResourceWalker } from './walk.ts';
import { wholeCollection } from './whole.ts';
import { ResourceWriter, countOf, recordOf } from './write.ts';

export interface LmdbResourcesOptions {
  readonly tables: Tables;
  readonly commits: Commits;
  readonly slots: Slots;
  readonly scheduler: FairScheduler;
  readonly feeds: LmdbFeeds;
  /** Rows per transaction, 512 by default. */
  readonly transactionRows?: number | undefined;
  /** For temporary files of loads. */
  readonly directory: string;
  /** Called before each look at the file. Throws when it cannot be read. */
  readonly begin: () => void;
  readonly now: () => number;
  /** Told in a sentence what went wrong while nobody waited for it. */
  readonly onWarning: (message: string) => void;
}

/** The resources of the embedded store, whose declarations it keeps itself. */
export class LmdbResources {
  readonly #options: LmdbResourcesOptions;
  readonly #resources: Resources;
  readonly #builds: IndexBuilds;
  readonly #sweeper: Sweeper;
  #isOpen = true;

  constructor(options: LmdbResourcesOptions) {
    this.#options = options;
    const resources = new Resources(options.tables.meta);
    this.#resources = resources;
    this.#builds = new IndexBuilds({ ...options, resources });
    this.#sweeper = new Sweeper({ ...options, resources });
  }

  /** See Store.open. Makes the collection and the indexes that are missing. Those of a full one are built meanwhile. */
  async open(declaration: Declaration): Promise<Collection> {
    const { collection } = declaration;
    const { tables, commits, slots, scheduler, begin, now, feeds, transactionRows } = this.#options;
    const { log } = feeds;
    begin();
    const loads = this.#loadsOf(collection);
    await this.#declare(declaration, loads);
    if (!(await loads.recover())) loads.watch();
    this.#builds.begin(collection);
    const record = (): ResourceRecord => {
      begin();
      const found = recordOf(this.#resources, collection);
      // Another process added an index, and may have been killed since then.
      if (found.indexes.some(isInBuilding)) this.#builds.begin(collection);
      return found;
    };
    const reader = new LmdbReader(
      ...([tables, 'rows', slots, scheduler] as const),
      () => {
        begin();
        loads.assertWhole();
      },
      {
        walker: new ResourceWalker(tables),
        rangesOf: (plan, after) => rangesOf(record(), plan, after),
        keyOfId: (id) => keyOfRow(rowsPrefix(record()), id),
      },
    );
    const writer = new ResourceWriter(
      tables,
      this.#resources,
      collection,
      commits,
      loads,
      log,
      transactionRows,
    );
    const count = (): number => {
      loads.assertWhole();
      return countOf(tables, record());
    };
    const rows: Collection = {
      ...lmdbCollection({ record, rows: count, reader, writer, loads, now }),
      remove: (keys) =>
        removeRows(keys, {
          ...{ commits, gate: loads, transactionRows },
          removeAll: (some) => removeFromResource(tables, this.#resources, collection, log, some),
        }),
      changes: feeds.of(resourceFeedSet(tables, this.#resources, collection, loads, begin)),
    };
    return wholeCollection(rows, () => identityOf(record()));
  }

  /** The collections that have a log of changes: its number, and the number of rows. */
  logs(): readonly LoggedSet[] {
    return this.#resources.names().map((name) => {
      const record = recordOf(this.#resources, name);
      return { set: record.number, rows: countOf(this.#options.tables, record) };
    });
  }

  /** See Store.make. */
  async make(declaration: Declaration, tell: (line: string) => void): Promise<OwnedCollection> {
    const { collection, name } = declaration;
    const isNew = this.#resources.record(collection) === null;
    const rows = await this.open({ ...declaration, indexes: [] });
    if (isNew) tell(`created the resource ${name}`);
    return {
      ...rows,
      indexesFirst: true,
      clear: (signal) => this.#clear(collection, signal),
      addIndex: (...call) => this.#addIndex(declaration, ...call),
    };
  }

  async #clear(collection: string, signal: AbortSignal): Promise<Count> {
    const { tables, feeds } = this.#options;
    signal.throwIfAborted();
    const rows = await this.#afterLoads(this.#loadsOf(collection), () =>
      emptyResource(tables, this.#resources, collection, feeds.log),
    );
    await this.#sweeper.sweep(() => !signal.aborted);
    signal.throwIfAborted();
    return { rows, is: 'exact' };
  }

  /** Frees space in the background. */
  sweepLater(): void {
    this.#sweeper.sweepLater();
  }

  /** See OwnedCollection.addIndex. */
  async #addIndex(
    declaration: Declaration,
    paths: readonly string[],
    onRows: (rows: number) => void,
    signal: AbortSignal,
  ): Promise<AddedIndex> {
    const { tables, commits, begin, transactionRows } = this.#options;
    const { collection } = declaration;
    const find = (): IndexRecord | undefined =>
      recordOf(this.#resources, collection).indexes.find((one) => nameOf(one.paths) === nameOf(paths));
    begin();
    const before = find();
    const loads = this.#loadsOf(collection);
    if (before?.spoilt === undefined) await this.#declare({ ...declaration, indexes: [paths] }, loads);
    else
      await this.#afterLoads(loads, () => {
        const index = find();
        if (index?.spoilt !== undefined)
          renewIndex(this.#resources, recordOf(this.#resources, collection), index);
      });
    const goesOn = () => this.#isOpen && !signal.aborted;
    await buildIndexes(tables, this.#resources, collection, commits, goesOn, { transactionRows, onRows });
    signal.throwIfAborted();
    begin();
    const now = find();
    if (!now) throw new Error(`the index ${nameOf(paths)} is gone`);
    return { index: indexOf(now), isNew: before?.spoilt !== undefined || before?.builtTo !== null };
  }

  /** See Store.list. */
  list(): readonly Found[] {
    this.#options.begin();
    return this.#resources.names().map((collection) => ({ database: '', collection }));
  }

  /** See Store.declared. */
  declared(): readonly Declaration[] {
    this.#options.begin();
    return this.#resources.names().map((name) => {
      const record = recordOf(this.#resources, name);
      return {
        name: record.name,
        collection: name,
        indexes: record.indexes.map(({ paths }) => paths),
      };
    });
  }

  /** Resolves when nothing is being built. What is unfinished goes on when its collection is opened again. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await Promise.all([this.#builds.close(), this.#sweeper.close()]);
  }

  #loadsOf(collection: string): Loads {
    const { tables, commits, begin, directory, feeds } = this.#options;
    const target = resourceTarget(tables, this.#resources, collection, feeds.log);
    const mark = new LoadMark(tables.meta, `resource ${collection}`);
    return new Loads({ target, mark, commits, directory, begin });
  }

  /** Runs a transaction while nobody loads the collection. */
  async #afterLoads<T>(loads: Loads, action: () => T): Promise<T> {
    for (;;) {
      await loads.untilFree();
      const done = await this.#options.commits.run(() => (loads.isUnderWay ? null : { result: action() }));
      if (done) return done.result;
    }
  }

  /** Stores what the declaration has and the file lacks. An index that is missing waits for the end of a load. */
  async #declare(declaration: Declaration, loads: Loads): Promise<void> {
    if (missingIndexes(this.#resources.record(declaration.collection), declaration)?.length === 0) return;
    await this.#afterLoads(loads, () => storeDeclaration(this.#options.tables, this.#resources, declaration));
    this.#options.begin();
  }
}

import { join } from 'node:path';
import { assertWritable, directoryFiles } from './directory.ts';
import { reasonOf } from '../error-reason.ts';
import type { Slots } from './slots.ts';
import { coreOf, type Core } from './sqlite/core.ts';
import { openFile } from './sqlite/file.ts';
import { setFeed } from './sqlite/feed.ts';
import { fillSet } from './sqlite/fill.ts';
import { setCounts } from './sqlite/set-counts.ts';
import { setIndexes } from './sqlite/set-indexes.ts';
import { setReads } from './sqlite/set-reads.ts';
import { setWrites } from './sqlite/set-writes.ts';
import { NEW, type SetShape } from './sqlite/sets.ts';
import type { Collection, Declaration, OwnedCollection, Store } from './store.ts';

const CHANGES_TTL_MS = 7 * 24 * 60 * 60_000;
/** Rows per transaction above which a process is one that imports: it may wait longer for the disk. */
const BULK_ROWS = 1_000;
const [CHECKPOINT_PAGES, BULK_CHECKPOINT_PAGES] = [1_000, 8_000];
/** What the names of resources begin with among the sets. */
const RESOURCE = 'resource ';

export interface SqliteOptions {
  /** The directory of the store's file. It is created when missing. */
  readonly directory: string;
  readonly slots: Slots;
  readonly items: Declaration;
  /** Rows per transaction. More are faster but block the event loop longer (512: 5 ms): for imports only. */
  readonly transactionRows?: number;
  /** Called with a sentence when something failed that no caller waited for. By default such failures are dropped. */
  readonly onWarning?: (message: string) => void;
  readonly now?: () => number;
  /** A clock in milliseconds since 1970. */
  readonly wallClock?: () => number;
  /** How long changes are kept for readers of the feed, in milliseconds. 7 days by default. */
  readonly changesTtlMs?: number;
  /** The most changes that are kept of a set with few rows, 1,000,000 by default. */
  readonly mostChanges?: number;
}

/**
 * Opens the embedded store and creates it when there never was one. Several processes may have it open. Rejects with an
 * Error that says what is wrong when the directory cannot be written or the file is not one of ours.
 */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { directory, slots, transactionRows = 0, onWarning = () => undefined } = options;
  const file = await openFile(directory);
  try {
    await assertWritable(join(directory, 'exports'));
    const isBulk = transactionRows > BULK_ROWS;
    const core = coreOf({
      ...{ file, directory, slots, onWarning },
      checkpointPages: isBulk ? BULK_CHECKPOINT_PAGES : CHECKPOINT_PAGES,
      transactionRows: options.transactionRows,
      ttlMs: options.changesTtlMs ?? CHANGES_TTL_MS,
      now: options.now ?? (() => performance.now()),
      wallClock: options.wallClock ?? Date.now,
      mostChanges: options.mostChanges,
    });
    const { collection: name, indexes, refusalOf = () => null } = options.items;
    const items = await openSet(core, { ...shapeOf(name, name), indexes, refusalOf });
    return storeOf(core, items, options, isBulk);
  } catch (error) {
    await file.close('failed');
    throw error;
  }
}

function storeOf(core: Core, items: OpenSet, { directory }: SqliteOptions, isBulk: boolean): Store {
  const { file, log, looks, sets, writes } = core;
  const { onWarning } = core.options;
  /** The sets of resources and records, by their names in the file. */
  const opened = new Map<string, Promise<OpenSet>>();
  const ready = new Set([items]);
  let isOpen = true;
  const cleaned = clean().catch((error: unknown) =>
    onWarning(`removed rows or old changes still take space: ${reasonOf(error)}`),
  );
  if (!isBulk) core.background.begin(file.isCutOff, cleaned);
  const declared = (): Promise<Declaration[]> =>
    looks.soon(() =>
      sets
        .names()
        .filter((name) => name.startsWith(RESOURCE))
        .map((name) => {
          const { label, indexes, isUnfilled } = sets.get(name);
          const paths = indexes.map((index) => index.paths);
          const declaration = { name: label, collection: name.slice(RESOURCE.length), indexes: paths };
          return { ...declaration, ...(isUnfilled && { isUnfilled }) };
        }),
    );

  return {
    name: 'sqlite',
    keepsDeclarations: true,
    isNew: file.isNew,
    items: owned(items),
    files: directoryFiles(join(directory, 'exports')),
    declared,
    open: async ({ name, collection, indexes }) =>
      owned(await setOf({ ...shapeOf(RESOURCE + collection, name), indexes })),
    records: async ({ collection, indexes }) => {
      const set = await setOf({ ...shapeOf(collection, collection), hasChanges: false, indexes });
      return { ...set.rows, change: set.writes.change, addIndex: set.indexes.add };
    },
    make: async (declaration, report) => {
      const { name, collection } = declaration;
      const found = await looks.soon(() => sets.find(RESOURCE + collection));
      const set = await setOf({ ...shapeOf(RESOURCE + collection, name), isUnfilled: true });
      if (!found || found.isUnfilled) report(`created the resource ${name}`);
      return owned(set);
    },
    list: async () =>
      (await declared()).flatMap(({ collection, isUnfilled }) =>
        isUnfilled ? [] : [{ database: '', collection }],
      ),
    ping: async () => {
      await core.ping();
      return [];
    },
    logBytes: core.logBytes,
    /** Completes the writes already requested. */
    close: async () => {
      if (!isOpen) return;
      isOpen = false;
      await Promise.all(Array.from(ready, (set) => set.indexes.close()));
      await cleaned;
      await core.close();
    },
  };

  async function setOf(shape: SetShape): Promise<OpenSet> {
    const known = opened.get(shape.name);
    if (known) {
      const set = await known;
      await set.indexes.declare(shape.indexes);
      return set;
    }
    const opening = openSet(core, shape);
    opened.set(shape.name, opening);
    opening.then(
      (set) => ready.add(set),
      () => opened.delete(shape.name), // the next call tries again
    );
    return opening;
  }

  /** Frees the space of removed rows and old changes that a process before this one has left, perhaps half way. */
  async function clean(): Promise<void> {
    await core.sweep(true);
    for (const name of await looks.soon(() => sets.names()))
      while (isOpen && (await looks.soon(() => log.isPrunable(sets.get(name)))))
        await writes.run(() => log.prune(sets.get(name)));
  }
}

export type OpenSet = Awaited<ReturnType<typeof openSet>>;

/** Opens a set of rows. Makes it and the indexes that are missing. */
export async function openSet(core: Core, shape: SetShape) {
  const { looks, writes, sets } = core;
  const { name, label, isUnfilled } = shape;
  const indexes = setIndexes(core, shape);
  const reads = setReads(core, shape, indexes);
  const { read, describe } = reads;
  const rows: Collection = {
    ...{ read, describe, ...setCounts(core, reads) },
    ...(shape.hasChanges && { changes: setFeed(core, shape, reads) }),
  };
  const isMissing = await looks.soon(() => sets.find(name) === null);
  if (isMissing) {
    const records = shape.indexes.map((paths, n) => ({ number: n + 1, paths, builtTo: null }));
    await writes.run(
      () => sets.find(name) ?? sets.create({ ...NEW, name, label, isUnfilled, indexes: records }),
    );
  }
  await indexes.declare(shape.indexes);
  await looks.soon(() => indexes.buildLater(sets.get(name)));
  const writing = setWrites(core, shape);
  const fill: OwnedCollection['fill'] = (...call) =>
    fillSet(core, shape, { ...writing, addIndex: indexes.add }, ...call);
  return { rows, indexes, fill, writes: writing };
}

function shapeOf(name: string, label: string): SetShape {
  const refusalOf = () => null;
  return { name, label, hasChanges: true, indexes: [], refusalOf };
}

function owned({ rows, fill, indexes, writes }: OpenSet): OwnedCollection {
  const { insert, remove, clear } = writes;
  return {
    ...{ ...rows, fill, insert, remove, clear },
    close: () => undefined, // other opens of the set share it
    addIndex: indexes.add,
  };
}

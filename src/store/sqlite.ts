import { join } from 'node:path';
import { assertWritable, Directory } from './directory.ts';
import type { FileStore } from './files.ts';
import { reasonOf } from '../error-reason.ts';
import type { Slots } from './slots.ts';
import { Core } from './sqlite/core.ts';
import { openFile } from './sqlite/file.ts';
import { OpenSet } from './sqlite/open-set.ts';
import type { SetShape } from './sqlite/set-parts.ts';
import type { Declaration, Found, OwnedCollection, Store } from './store.ts';
import type { RecordDeclaration, Records } from './records.ts';

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
  /** The collection that every store has. */
  readonly items: Declaration;
  /**
   * Rows per transaction. More rows are faster but block the event loop longer (512: 5 ms), so raise this for imports
   * only.
   */
  readonly transactionRows?: number;
  /** Called with a sentence when something failed that no caller waited for. By default such failures are dropped. */
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
 * Opens the embedded store and creates it when there never was one. Several processes may have it open. Rejects with an
 * Error that says what is wrong when the directory cannot be written or the file is not one of ours.
 */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { directory, slots, transactionRows = 0, onWarning = () => undefined } = options;
  const file = await openFile(directory);
  try {
    await assertWritable(join(directory, 'exports'));
    const core = new Core({
      ...{ file, directory, slots, onWarning },
      checkpointPages: transactionRows > BULK_ROWS ? BULK_CHECKPOINT_PAGES : CHECKPOINT_PAGES,
      ttlMs: options.changesTtlMs ?? CHANGES_TTL_MS,
      now: options.wallClock ?? Date.now,
      mostChanges: options.mostChanges,
    });
    const store = new SqliteStore(core, options);
    await store.begin();
    return store;
  } catch (error) {
    await file.close(false);
    throw error;
  }
}

class SqliteStore implements Store {
  readonly name = 'sqlite';
  readonly keepsDeclarations = true;
  readonly isNew: boolean;
  readonly items: OwnedCollection;
  readonly files: FileStore;
  readonly #core: Core;
  readonly #open: (shape: SetShape) => OpenSet;
  readonly #items: OpenSet;
  /** The sets of resources and records, by their names in the file. */
  readonly #sets = new Map<string, OpenSet>();
  readonly #onWarning: (message: string) => void;
  #background: Promise<void> = Promise.resolve();
  #isOpen = true;

  constructor(core: Core, options: SqliteOptions) {
    const { directory, slots, transactionRows, onWarning = () => undefined } = options;
    this.#core = core;
    this.isNew = core.file.isNew;
    this.#onWarning = onWarning;
    const now = options.now ?? (() => performance.now());
    this.#open = (shape) => new OpenSet(core, shape, { slots, transactionRows, now, onWarning });
    this.files = new Directory(join(directory, 'exports'));
    const { collection: name, indexes, refusalOf = () => null } = options.items;
    this.#items = this.#open({ ...shapeOf(name, name), indexes, refusalOf });
    this.items = owned(this.#items);
  }

  /** Makes what the file lacks, and undoes a load whose process has ended. To be called before the first read. */
  async begin(): Promise<void> {
    await this.#items.begin();
    this.#background = this.#clean().catch((error: unknown) =>
      this.#onWarning(`removed rows or old changes still take space: ${reasonOf(error)}`),
    );
  }

  async open({ name, collection, indexes }: Declaration): Promise<OwnedCollection> {
    return owned(await this.#resource(name, collection, indexes));
  }

  async records({ collection, indexes }: RecordDeclaration): Promise<Records> {
    const set = await this.#set({ ...shapeOf(collection, collection), hasChanges: false }, indexes);
    return {
      ...set.rows(),
      change: (...call) => set.writes.change(...call),
      addIndex: (...call) => set.indexes.add(...call),
    };
  }

  async make(declaration: Declaration, report: (line: string) => void): Promise<OwnedCollection> {
    const { name, collection } = declaration;
    const isNew = await this.#core.looks.soon(() => !this.#core.sets.find(RESOURCE + collection));
    const set = await this.#resource(name, collection, []);
    if (isNew) report(`created the resource ${name}`);
    return owned(set);
  }

  async list(): Promise<readonly Found[]> {
    return (await this.declared()).map(({ collection }) => ({ database: '', collection }));
  }

  declared(): Promise<readonly Declaration[]> {
    const { looks, sets } = this.#core;
    const look = () =>
      sets
        .names()
        .filter((name) => name.startsWith(RESOURCE))
        .map((name): Declaration => {
          const { label, indexes } = sets.get(name);
          return {
            name: label,
            collection: name.slice(RESOURCE.length),
            indexes: indexes.map(({ paths }) => paths),
          };
        });
    return looks.soon(look);
  }

  async ping(): Promise<readonly string[]> {
    await this.#core.ping();
    return [];
  }

  logBytes(): number {
    return this.#core.logBytes();
  }

  /** Completes the writes already requested. */
  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await Promise.all([this.#items, ...this.#sets.values()].map((set) => set.indexes.close()));
    await this.#background;
    await this.#core.close();
  }

  #resource(label: string, collection: string, indexes: Declaration['indexes']): Promise<OpenSet> {
    return this.#set(shapeOf(RESOURCE + collection, label), indexes);
  }

  async #set(shape: SetShape, indexes: Declaration['indexes']): Promise<OpenSet> {
    const known = this.#sets.get(shape.name);
    const set = known ?? this.#open({ ...shape, indexes });
    this.#sets.set(shape.name, set);
    await (known ? known.indexes.declare(indexes) : set.begin());
    return set;
  }

  /** Frees the space of removed rows and old changes that a process before this one has left. */
  async #clean(): Promise<void> {
    const { looks, sets, log, writes } = this.#core;
    await this.#core.sweep();
    for (const name of await looks.soon(() => sets.names()))
      while (this.#isOpen && (await writes.run(() => log.prune(sets.get(name)))));
  }
}

function shapeOf(name: string, label: string): SetShape {
  const refusalOf = () => null;
  return { name, label, hasChanges: true, indexes: [], refusalOf };
}

function owned(set: OpenSet): OwnedCollection {
  return {
    ...set.rows(),
    indexesFirst: true,
    close: () => undefined, // other opens of the set share it
    insert: (...call) => set.writes.insert(...call),
    remove: (...call) => set.writes.remove(...call),
    load: (...call) => set.load(...call),
    clear: (signal) => set.writes.clear(signal),
    addIndex: (...call) => set.indexes.add(...call),
  };
}

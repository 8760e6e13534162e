import { join } from 'node:path';
import { assertWritable, directoryFiles } from '../folder/directory.ts';
import { reasonOf } from '../../base/error-reason.ts';
import type { Slots } from '../turns/slots.ts';
import { SqliteCollection } from './collection.ts';
import { Core } from './core.ts';
import { openFile } from './file/file.ts';
import { RESOURCE, type Collections, type CollectionShape } from './file/collections.ts';
import type { FileStore } from '../files.ts';
import type { RecordDeclaration, Records } from '../records.ts';
import type { CollectionEntry, Declaration, Listing, OwnedCollection, Store } from '../store.ts';
import { freeIndexes } from './write/drop.ts';

const SNAPSHOT_MS = 60_000;
const CHANGES_TTL_MS = 7 * 24 * 60 * 60_000;
/** Rows per transaction above which a process is one that imports: it may wait longer for the disk. */
const BULK_ROWS = 1_000;
const CHECKPOINT_PAGES = 1_000;
const BULK_CHECKPOINT_PAGES = 8_000;
/** The collection of items of a file of before, which every start made. */
const OLD_ITEMS = 'items';

export interface SqliteOptions {
  /** The directory of the store's file. It is created when missing. */
  readonly directory: string;
  readonly slots: Slots;
  /** Rows per transaction. More are faster but block the event loop longer (512: 5 ms): for imports only. */
  readonly transactionRows?: number;
  /** Called with a sentence when something failed that no caller waited for. By default such failures are dropped. */
  readonly onWarning?: (message: string) => void;
  /** How long a snapshot may be read, in milliseconds: meanwhile the write-ahead log only grows. 60 seconds by default. */
  readonly snapshotMs?: number;
  readonly now?: () => number;
  /** A clock in milliseconds since 1970. */
  readonly wallClock?: () => number;
  /** How long changes are kept for readers of the feed, in milliseconds. 7 days by default. */
  readonly changesTtlMs?: number;
  /** The most changes that are kept of a collection with few rows, 1,000,000 by default. */
  readonly mostChanges?: number;
}

/**
 * Opens the embedded store and creates it when there never was one. Several processes may have it open. Rejects with an
 * Error that says what is wrong when the directory cannot be written or the file is not one of ours.
 */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { directory, slots, transactionRows = 0, onWarning = () => undefined } = options;
  const file = await openFile(directory, onWarning);
  try {
    await assertWritable(join(directory, 'exports'));
    const isBulk = transactionRows > BULK_ROWS;
    const core = new Core({
      file,
      directory,
      slots,
      onWarning,
      checkpointPages: isBulk ? BULK_CHECKPOINT_PAGES : CHECKPOINT_PAGES,
      transactionRows: options.transactionRows,
      ttlMs: options.changesTtlMs ?? CHANGES_TTL_MS,
      snapshotMs: options.snapshotMs ?? SNAPSHOT_MS,
      now: options.now ?? (() => performance.now()),
      wallClock: options.wallClock ?? Date.now,
      mostChanges: options.mostChanges,
    });
    return new SqliteStore(core, isBulk);
  } catch (error) {
    await file.close('failed');
    throw error;
  }
}

class SqliteStore implements Store {
  readonly name = 'sqlite';
  readonly files: FileStore;
  readonly #core: Core;
  /** The collections of resources and records, by their names in the file. */
  readonly #opened = new Map<string, Promise<SqliteCollection>>();
  readonly #ready = new Set<SqliteCollection>();
  readonly #cleaned: Promise<void>;
  #isOpen = true;

  /** `isBulk`: it serves no clients. */
  constructor(core: Core, isBulk: boolean) {
    const { directory, file, onWarning } = core.options;
    this.#core = core;
    this.files = directoryFiles(join(directory, 'exports'));
    this.#cleaned = this.#clean().catch((error: unknown) =>
      onWarning(`removed rows or old changes still take space: ${reasonOf(error)}`),
    );
    core.checkpoints.hold(this.#cleaned);
    if (!isBulk) core.background.begin(file.isCutOff, this.#cleaned);
  }

  async open(declaration: Declaration, may: 'read' | 'make' = 'read'): Promise<OwnedCollection> {
    const { looks, collections } = this.#core;
    const name = await looks.soon(() => nameOf(declaration, collections));
    const { check } = declaration;
    const shape = { ...shapeOf(name, declaration.name), ...(check && { check }) };
    if (may === 'read') {
      const { indexes, create } = declaration;
      return this.#collection({ ...shape, indexes, ...(create && { isUnfilled: true }) });
    }
    const found = await looks.soon(() => collections.find(name));
    const collection = await this.#collection({ ...shape, isUnfilled: true });
    if (!found || found.isUnfilled) declaration.onMade?.(`created the resource ${declaration.name}`);
    return collection;
  }

  records({ collection, indexes }: RecordDeclaration): Promise<Records> {
    return this.#collection({ ...shapeOf(collection, collection), hasChanges: false, indexes });
  }

  /** It has no other databases. */
  async list(database?: string): Promise<Listing> {
    if (database !== undefined) return { collections: [] };
    const { looks, collections: records, file } = this.#core;
    const collections = await looks.soon(() =>
      records.names().flatMap((name) => entryOf(name, records) ?? []),
    );
    return { collections, isNew: file.isNew };
  }

  async ping(): Promise<readonly string[]> {
    await this.#core.ping();
    return [];
  }

  /** Completes the writes already requested. */
  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await Promise.all(Array.from(this.#ready, (collection) => collection.end()));
    await this.#cleaned;
    await this.#core.close();
  }

  size(): number {
    return this.#core.file.logBytes();
  }

  async #collection(shape: CollectionShape): Promise<SqliteCollection> {
    const known = this.#opened.get(shape.name);
    if (known) {
      const collection = await known;
      await collection.declare(shape.indexes);
      return collection;
    }
    const opening = SqliteCollection.open(this.#core, shape);
    this.#opened.set(shape.name, opening);
    opening.then(
      (collection) => this.#ready.add(collection),
      () => this.#opened.delete(shape.name), // the next call tries again
    );
    return opening;
  }

  /** Frees the space of removed rows, indexes and old changes that a process before this one has left, perhaps half way. */
  async #clean(): Promise<void> {
    const { looks, collections, log, writes } = this.#core;
    await this.#core.sweep(true);
    for (const name of await looks.soon(() => collections.names())) {
      await freeIndexes(this.#core, name, () => this.#isOpen);
      while (this.#isOpen && (await looks.soon(() => log.isPrunable(collections.get(name)))))
        await writes.run(() => log.prune(collections.get(name)), 'small');
    }
  }
}

/** The name of a resource's collection in the file. In a look. */
function nameOf({ name, collection }: Declaration, collections: Collections): string {
  const isOld = name === OLD_ITEMS && collection === OLD_ITEMS && collections.find(OLD_ITEMS) !== null;
  return isOld ? OLD_ITEMS : RESOURCE + collection;
}

/** What the store lists of a collection. Undefined: it has records. In a look. */
function entryOf(name: string, collections: Collections): CollectionEntry | undefined {
  const isOld = name === OLD_ITEMS;
  if (!isOld && !name.startsWith(RESOURCE)) return undefined;
  const { label, indexes, isUnfilled = isOld && collections.rows(name) === 0 } = collections.get(name);
  const collection = isOld ? name : name.slice(RESOURCE.length);
  const declaration = { name: label, collection, indexes: indexes.map(({ paths }) => paths) };
  return { database: '', collection, declaration, ...(isUnfilled && { isUnfilled }) };
}

function shapeOf(name: string, label: string): CollectionShape {
  return { name, label, hasChanges: true, indexes: [] };
}

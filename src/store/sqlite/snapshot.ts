import { AppError, changesUnsupported } from '../../base/errors.ts';
import type { Snapshot } from '../collection.ts';
import { KEY } from '../bookmark.ts';
import { tokenOf } from './changes/place.ts';
import type { Core } from './core.ts';
import { Connection } from './file/connection.ts';
import { Collections, type CollectionShape } from './file/collections.ts';
import { mmapBytesIn } from './file/directory.ts';
import { retryBusy } from './file/errors.ts';
import { latestEpoch } from './file/layout.ts';
import { ChangeLog } from './file/log.ts';
import { CollectionLooks, type LookParts } from './read/collection-looks.ts';
import { Reader } from './read/read.ts';
import { Reads } from './read/reads.ts';

/** A snapshot's own cache of pages: the system has those of the file. */
const CACHE_KIBIBYTES = 4 * 1024;
/** All rows in the order of the key. */
const BY_ID = { sort: KEY, direction: 1 } as const;
/** What a snapshot finds missing, it leaves to those who can write. */
const NO_BUILDER = { buildLater: () => undefined };

/**
 * Opens a snapshot of a collection: a connection of its own with an open read transaction, whose looks take turns with all
 * others. While it is open the write-ahead log cannot begin anew, so it ends after a time, and with the store.
 */
export async function openSnapshot(
  core: Core,
  shape: CollectionShape,
  signal: AbortSignal,
): Promise<Snapshot> {
  if (!shape.hasChanges) throw changesUnsupported('This collection has no changes.');
  signal.throwIfAborted();
  const state = await OpenState.open(core);
  try {
    const looks = new CollectionLooks(state.looked, shape, NO_BUILDER);
    const { identity, place } = await state.looked.looks.take(() => {
      const collection = looks.present(BY_ID);
      const { last } = state.looked.log.state(collection);
      const epoch = latestEpoch(state.connection);
      const own = { epoch, tables: collection.number, sequence: last, seen: last };
      return { identity: collection.identity, place: own };
    }, signal);
    return {
      rows: new Reads(looks),
      place: { token: tokenOf(place) },
      identity,
      release: state.release,
    };
  } catch (error) {
    state.release();
    throw error;
  }
}

/** One state of the file, which stays readable until it is released. */
class OpenState {
  readonly connection: Connection;
  readonly looked: LookParts;
  readonly #core: Core;
  readonly #timer: NodeJS.Timeout;
  #isOpen = true;

  private constructor(core: Core, connection: Connection) {
    const { slots, snapshotMs } = core.options;
    this.#core = core;
    this.connection = connection;
    const collections = new Collections(connection);
    const file = { check: () => this.#check(), faultOf: (error: unknown) => core.file.faultOf(error) };
    this.looked = {
      collections,
      looks: core.looks.beside(connection, file),
      reader: new Reader(connection, slots),
      log: new ChangeLog(connection, collections, core.options),
      background: core.background,
    };
    this.#timer = setTimeout(this.release, snapshotMs).unref();
    core.snapshots.add(this.release);
  }

  static async open(core: Core): Promise<OpenState> {
    const { file, options, looks } = core;
    await looks.soon(() => undefined); // rejects when the store is closed
    const mmapBytes = await mmapBytesIn(options.directory);
    const how = { readOnly: true, mmapBytes, cacheKibibytes: CACHE_KIBIBYTES };
    try {
      const connection = await retryBusy(() => new Connection(file.path, how));
      const state = new OpenState(core, connection);
      try {
        await retryBusy(() => connection.begin());
        file.checkWritable(true); // what has the name of the file is the file
        return state;
      } catch (error) {
        state.release();
        throw error;
      }
    } catch (error) {
      throw file.faultOf(error);
    }
  }

  readonly release = (): void => {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearTimeout(this.#timer);
    this.#core.snapshots.delete(this.release);
    // Closed alone, it would keep its state until its statements are garbage.
    this.connection.undo();
    this.connection.close();
  };

  /** SQLite itself may have ended the transaction: behind an error of the disk, the next look would see a later state. */
  #check(): void {
    this.#core.file.check();
    if (this.#isOpen && this.connection.isInTransaction) return;
    this.release();
    throw new AppError('snapshot-expired', 'The store no longer keeps this state of its rows.');
  }
}

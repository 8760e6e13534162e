import { statSync, type Stats } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { reasonOf } from '../../../base/error-reason.ts';
import { storeUnavailable } from '../../../base/errors.ts';
import { syncDirectory } from '../../folder/directory.ts';
import { currentBoot } from '../../writes/holder.ts';
import { Connection } from './connection.ts';
import { mmapBytesIn, prepareDirectory } from './directory.ts';
import { diskFull, freeBytes, isDamage, openFault, RESERVE_BYTES } from './errors.ts';
import { retryBusy, storeFault, storeReplaced } from './errors.ts';
import { faultOfFile, openHere } from './file-fault.ts';
import { assertOurs, createEpochs, createLayout, latestEpoch, meta, setMeta } from './layout.ts';
import { changeMark, readMark, storeGone, writeMark, type Mark } from './mark.ts';
import { newIdentity, Collections } from './collections.ts';

/** The store's file. SQLite keeps `-wal` and `-shm` beside it while a process has it open. */
export const FILE = 'sluice.db';

const LOOK_AT_DISK_MS = 250;
/** How often to look whether the file is still in its place. Milliseconds. */
const LOOK_AT_PLACE_MS = 1_000;

/**
 * Opens the file, and makes it when there never was one. Rejects with an Error that says what is wrong. `onWarning`: called
 * when the file turns out to be damaged, or not to be in its place any more.
 */
export async function openFile(directory: string, onWarning: (message: string) => void): Promise<StoreFile> {
  const path = join(directory, FILE);
  const exists = await prepareDirectory(directory, FILE);
  const mark = await readMark(directory);
  // Another process that makes the store writes the mark after its file, and perhaps since the look at the file.
  const isGone = !exists && mark !== null && !(await prepareDirectory(directory, FILE));
  if (isGone) throw storeGone(path, 'is missing or empty');
  const mmapBytes = await mmapBytesIn(directory);
  let connection: Connection | null = null;
  try {
    const fault = exists ? await faultOfFile(path) : null;
    if (fault !== null) throw new Error(fault);
    if (!exists) await makeFile(path);
    // Already the first statements wait for a process that makes the store at this moment.
    const opened = await retryBusy(() => new Connection(path, { mmapBytes }));
    connection = opened;
    openHere.push(path);
    const state = await retryBusy(() =>
      begin(opened, (found) => {
        if (mark && mark.id !== found.id) throw storeGone(path, 'is another store');
        if (mark && found.stops < mark.stops && !found.isBackup)
          throw storeGone(path, 'is older than its last clean stop');
      }),
    );
    // A file without its mark was brought here.
    if (exists && !mark) await retryBusy(() => beginHistory(opened));
    const log = await open(`${path}-wal`, 'r+');
    await log.datasync();
    await syncDirectory(directory);
    if (!mark || state.isBackup) await writeMark(path, { id: state.id, stops: state.stops });
    // When the process ends before this is durable, the file is still a backup for the next one.
    if (state.isBackup) await retryBusy(() => beginHistory(opened));
    const at = [await stat(path), await log.stat()];
    return new StoreFile(path, opened, { log, state, at, isCutOff: wasWritten(mark, state), onWarning });
  } catch (error) {
    if (connection) openHere.splice(openHere.indexOf(path), 1);
    connection?.close();
    if (error instanceof Error && error.message.includes(path)) throw error;
    throw new Error(`${path} cannot be opened as the embedded store: ${openFault(error, directory)}`, {
      cause: error,
    });
  }
}

/**
 * Makes an empty file. It is for this user alone, and for the group where that may write to the directory: then several
 * users share it on purpose.
 */
async function makeFile(path: string): Promise<void> {
  const isShared = ((await stat(dirname(path))).mode & 0o020) !== 0;
  await (await open(path, 'a', isShared ? 0o660 : 0o600)).close();
}

/** Makes the tables of a new file. Throws an Error for a file of another program or format, and what `check` throws. */
function begin(connection: Connection, check: (state: FileState) => void): FileState {
  connection.exec('pragma auto_vacuum=incremental'); // of a new file alone
  const { journal_mode: mode } = connection.get('pragma journal_mode=wal') ?? {};
  if (mode !== 'wal') throw new Error('its file system has no shared memory, which the embedded store needs');
  connection.transaction(() => {
    if (connection.all('select name from sqlite_schema limit 1').length === 0) createLayout(connection);
    assertOurs(connection);
    check(stateOf(connection));
    createEpochs(connection);
  });
  return stateOf(connection);
}

type FileState = ReturnType<typeof stateOf>;

function stateOf(connection: Connection) {
  return {
    id: String(meta(connection, 'id')),
    stops: Number(meta(connection, 'stops')),
    isBackup: meta(connection, 'backup') !== null,
    secret: Buffer.from(String(meta(connection, 'secret')), 'hex'),
  };
}

/** The file is a restored backup: all places in its history, and rows that were read, are of another one. */
function beginHistory(connection: Connection): void {
  connection.transaction(() => {
    connection.run("delete from meta where key in ('backup', 'epoch')");
    connection.run('delete from epochs');
    createEpochs(connection);
    const collections = new Collections(connection);
    for (const name of collections.names())
      collections.put({ ...collections.get(name), identity: newIdentity(), imports: undefined });
  });
}

/** Whether something was acknowledged since the last stop of a process. */
function wasWritten(mark: Mark | null, { stops }: FileState): boolean {
  return mark?.writtenAt !== undefined && stops <= mark.writtenAt;
}

interface OpenedFile {
  /** The write-ahead log. */
  readonly log: FileHandle;
  readonly state: FileState;
  /** The file and its log. */
  readonly at: readonly Stats[];
  readonly isCutOff: boolean;
  readonly onWarning: (message: string) => void;
}

/** The file while this process has it open, and whether it may be read and written. */
export class StoreFile {
  readonly path: string;
  readonly connection: Connection;
  /** Whether no process that had the file open has ended in order yet. */
  readonly isNew: boolean;
  /** Whether the last end may not have been in order, or another process is writing now. */
  readonly isCutOff: boolean;
  /** What sealed places are made with. */
  readonly secret: Uint8Array;
  readonly #opened: OpenedFile;
  readonly #looking: NodeJS.Timeout;
  /** How often the store had been stopped when the mark last said that something was written. */
  #writtenAt: number | null = null;
  #isOpen = true;
  #isReplaced = false;
  #damage: unknown = null;
  #diskLookedAt = -Infinity;

  constructor(path: string, connection: Connection, opened: OpenedFile) {
    this.path = path;
    this.connection = connection;
    this.isNew = opened.state.stops === 0;
    this.isCutOff = opened.isCutOff;
    this.secret = opened.state.secret;
    this.#opened = opened;
    this.#looking = setInterval(() => {
      try {
        this.#assertInPlace();
      } catch {
        if (this.#isReplaced) clearInterval(this.#looking); // it stays so. Else the look failed, and the next one says more
      }
    }, LOOK_AT_PLACE_MS).unref();
  }

  /** Throws when the file cannot be read. */
  check(): void {
    if (!this.#isOpen) throw storeUnavailable(new Error('the embedded store is closed'));
    if (this.#isReplaced) throw storeReplaced();
  }

  /** Throws when the file cannot be written. `isSmall`: it frees space, or needs so little that a start must not fail for it. */
  checkWritable(isSmall: boolean): void {
    this.check();
    this.#assertInPlace();
    if (isSmall) return;
    const now = performance.now();
    if (now - this.#diskLookedAt < LOOK_AT_DISK_MS) return;
    const directory = dirname(this.path);
    if (freeBytes(directory) < RESERVE_BYTES) throw diskFull(directory);
    this.#diskLookedAt = now;
  }

  /** Throws when the file is damaged as far as it was read until now. */
  assertWhole(): void {
    if (this.#damage !== null) throw this.#damage as Error;
  }

  /** Translates an error of SQLite, and remembers damage. */
  faultOf(error: unknown): unknown {
    const fault = storeFault(error, dirname(this.path));
    if (isDamage(error) && this.#damage === null) {
      this.#damage = fault;
      this.#opened.onWarning(`the file of the store is damaged: ${reasonOf(error)}; restore a backup`);
    }
    return fault;
  }

  /** Makes durable what was committed. */
  async sync(): Promise<void> {
    await this.#opened.log.datasync();
    await this.#noteWritten();
    this.#assertInPlace(); // else what was written is in a file that no one will open again
  }

  /** The pages in the write-ahead log, which a checkpoint moves into the file. */
  pagesInLog(): number {
    return Number(this.connection.get('pragma wal_checkpoint(noop)')?.log ?? 0);
  }

  logBytes(): number {
    return statSync(`${this.path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Refuses what would read or write from now on. */
  refuse(): void {
    this.#isOpen = false;
    clearInterval(this.#looking);
  }

  /**
   * Ends the use of the file. `stopped`: all writes are done. The connection of a file that was replaced stays open, because
   * SQLite would move its log into a file that it is not of, or remove the log of another one.
   */
  async close(how: 'stopped' | 'failed'): Promise<void> {
    this.refuse();
    const { log, state } = this.#opened;
    const isStop = how === 'stopped' && !this.#isReplaced;
    let stops: number | null = null;
    try {
      if (isStop) stops = await retryBusy(() => this.#countStop());
      await log.datasync();
      // The binding ends statements when they are garbage, and SQLite keeps the log until then.
      if (isStop) this.connection.get('pragma wal_checkpoint(truncate)');
    } finally {
      await log.close();
      if (!this.#isReplaced) this.connection.close();
      openHere.splice(openHere.indexOf(this.path), 1);
    }
    if (stops !== null) await changeMark(this.path, { id: state.id, stops });
  }

  /**
   * Throws, and refuses everything from then on, when the file or its log does not have its name any more: another file there
   * is a store that this process does not see.
   */
  #assertInPlace(): void {
    if (
      !this.#isReplaced &&
      this.#opened.at.every((opened, n) => isAt(this.path + (n === 0 ? '' : '-wal'), opened))
    )
      return;
    if (!this.#isReplaced)
      this.#opened.onWarning(
        `${this.path} or its log was replaced or removed while this process has it open: nothing is read or written until it is started again; stop every process before you restore a backup`,
      );
    this.#isReplaced = true;
    throw storeReplaced();
  }

  /** Notes that the log has something acknowledged since the last stop of a process. */
  async #noteWritten(): Promise<void> {
    const writtenAt = Number(await retryBusy(() => meta(this.connection, 'stops')));
    if (writtenAt === this.#writtenAt) return;
    const epoch = await retryBusy(() => latestEpoch(this.connection));
    const boot = currentBoot();
    await changeMark(this.path, { id: this.#opened.state.id, writtenAt, epoch, boot });
    this.#writtenAt = writtenAt;
  }

  #countStop(): number {
    const stops = Number(meta(this.connection, 'stops')) + 1;
    this.connection.transaction(() => setMeta(this.connection, 'stops', stops));
    return stops;
  }
}

function isAt(path: string, { ino, dev }: Stats): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found?.ino === ino && found.dev === dev;
}

import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../../error-reason.ts';
import { syncDirectory } from '../directory.ts';
import { Connection } from './connection.ts';
import { mmapBytesIn, prepareDirectory, readMark, storeGone, writeMark } from './directory.ts';
import { assertOurs, createEpochs, createLayout, meta, setMeta } from './layout.ts';
import { retryBusy } from './errors.ts';
import { newIdentity, Sets } from './sets.ts';

/** The store's file. SQLite keeps `-wal` and `-shm` beside it while a process has it open. */
export const FILE = 'sluice.db';

const openHere: string[] = [];

export type StoreFile = Awaited<ReturnType<typeof openFile>>;

/** Opens the file, and makes it when there never was one. Rejects with an Error that says what is wrong. */
export async function openFile(directory: string) {
  const path = join(directory, FILE);
  const exists = await prepareDirectory(directory, FILE, openHere.includes(path));
  const mark = await readMark(directory);
  // Another process that makes the store writes the mark after its file, and perhaps since the look at the file.
  const isGone = !exists && mark !== null && !(await prepareDirectory(directory, FILE, false));
  if (isGone) throw storeGone(path, 'is missing or empty');
  const mmapBytes = await mmapBytesIn(directory);
  let connection: Connection | null = null;
  try {
    // Already the first statements wait for a process that makes the store at this moment.
    const opened = await retryBusy(() => new Connection(path, { mmapBytes }));
    connection = opened;
    openHere.push(path);
    await retryBusy(() => begin(opened));
    const state = stateOf(opened);
    if (mark && mark.id !== state.id) throw storeGone(path, 'is another store');
    if (mark && state.stops < mark.stops && !state.isBackup)
      throw storeGone(path, 'is older than its last clean stop');
    // A file without its mark was brought here.
    if (exists && !mark) await retryBusy(() => beginHistory(opened));
    const log = await open(`${path}-wal`, 'r+');
    await log.datasync();
    await syncDirectory(directory);
    if (!mark || state.isBackup) await writeMark(directory, state);
    // When the process ends before this is durable, the file is still a backup for the next one.
    if (state.isBackup) await retryBusy(() => beginHistory(opened));
    return {
      ...{ path, connection: opened },
      /** Whether no process that had the file open has ended in order yet. */
      isNew: state.stops === 0,
      /** What sealed places are made with. */
      secret: state.secret,
      sync: (): Promise<void> => log.datasync(),
      /** The pages in the write-ahead log, which a checkpoint moves into the file. */
      pagesInLog: () => Number(opened.get('pragma wal_checkpoint(noop)')?.log ?? 0),
      /** Ends the use of the file. `isClean`: all writes are done. */
      close: async (isClean: boolean): Promise<void> => {
        let stops: number | null = null;
        try {
          if (isClean) stops = await retryBusy(() => countStop(opened));
          await log.datasync();
          // The binding ends statements when they are garbage, and SQLite keeps the log until then.
          if (isClean) opened.get('pragma wal_checkpoint(truncate)');
        } finally {
          await log.close();
          opened.close();
          openHere.splice(openHere.indexOf(path), 1);
        }
        if (stops !== null) await writeMark(directory, { id: state.id, stops });
      },
    };
  } catch (error) {
    if (connection) openHere.splice(openHere.indexOf(path), 1);
    connection?.close();
    if (error instanceof Error && !('errcode' in error)) throw error;
    throw new Error(`${path} cannot be opened as the embedded store: ${reasonOf(error)}`, { cause: error });
  }
}

/** Makes the tables of a new file. Throws an Error for a file of another program or format. */
function begin(connection: Connection): void {
  const { journal_mode: mode } = connection.get('pragma journal_mode=wal') ?? {};
  if (mode !== 'wal') throw new Error('its file system has no shared memory, which the embedded store needs');
  transaction(connection, () => {
    if (connection.all('select name from sqlite_schema limit 1').length === 0) createLayout(connection);
    assertOurs(connection);
    createEpochs(connection);
  });
}

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
  transaction(connection, () => {
    connection.run("delete from meta where key in ('backup', 'epoch')");
    connection.run('delete from epochs');
    createEpochs(connection);
    const sets = new Sets(connection);
    for (const name of sets.names())
      sets.put({ ...sets.get(name), identity: newIdentity(), imports: undefined });
  });
}

function countStop(connection: Connection): number {
  let stops = 0;
  transaction(connection, () => {
    stops = Number(meta(connection, 'stops')) + 1;
    setMeta(connection, 'stops', stops);
  });
  return stops;
}

function transaction(connection: Connection, work: () => void): void {
  connection.run('begin immediate');
  try {
    work();
    connection.run('commit');
  } finally {
    connection.undo();
  }
}

import { randomUUID } from 'node:crypto';
import { open, readdir, realpath, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { syncDirectory } from '../../folder/directory.ts';
import { Connection } from './connection.ts';
import { sizeOf } from './directory.ts';
import { isUnopenable, retryBusy } from './errors.ts';
import { faultOfFile } from './file-fault.ts';
import { assertOurs, setMeta } from './layout.ts';

/** How the names of files that are not whole end: with a UUID, and what SQLite adds. */
const UNFINISHED = /\.[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?:-journal|-wal|-shm)?$/;

interface BackupOptions {
  /** The store's file. Other processes may read and write it. */
  readonly from: string;
  readonly to: string;
  readonly replaces: boolean;
  /** Called with how many pages of how many were copied. */
  readonly onPages: (copied: number, pages: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Copies one state of the store's file. The copy gets its name when it is whole and durable. Resolves with its size in
 * bytes. Rejects with an Error that says what is wrong, or with the signal's reason, and then leaves nothing behind.
 */
export async function backUp({ from, to, replaces, onPages, signal }: BackupOptions): Promise<number> {
  if ((await sizeOf(to)) !== null) {
    if (!replaces) throw new Error(`${to} exists: use --replace to replace it`);
    if ((await realpath(to)) === (await realpath(from))) throw new Error(`${to} is the store itself`);
  }
  const source = await openToRead(from);
  const unfinished = `${to}.${randomUUID()}`;
  try {
    await removeUnfinished(to);
    await (await open(unfinished, 'wx', 0o600)).close();
    await source.copyTo(unfinished, (...pages) => {
      onPages(...pages);
      signal.throwIfAborted();
    });
    signal.throwIfAborted();
    // A store that opens the copy begins a new epoch. Without a write-ahead log the copy is one file.
    const copy = new Connection(unfinished);
    copy.exec('pragma journal_mode=delete; pragma synchronous=full');
    setMeta(copy, 'backup', new Date().toISOString());
    copy.close();
    const file = await open(unfinished, 'r+');
    await file.sync().finally(() => file.close());
    await rename(unfinished, to);
    await syncDirectory(dirname(to));
    return (await sizeOf(to)) ?? 0;
  } finally {
    source.close();
    await rm(unfinished, { force: true });
  }
}

/** Removes what backups of this name that were killed have left. One that runs loses its file, and says so. */
async function removeUnfinished(to: string): Promise<void> {
  const names = await readdir(dirname(to));
  const left = names.filter((name) => name.startsWith(`${basename(to)}.`) && UNFINISHED.test(name));
  await Promise.all(left.map((name) => rm(join(dirname(to), name), { force: true })));
}

/** Opens a store's file that other processes may have open, and writes nothing to it. */
export async function openToRead(path: string): Promise<Connection> {
  if (!(await sizeOf(path))) throw new Error(`${path} is missing or empty`);
  const fault = await faultOfFile(path);
  if (fault !== null) throw new Error(`${path} cannot be read: ${fault}`);
  const connection = await retryBusy(() => new Connection(path, { readOnly: true }));
  try {
    connection.exec('pragma busy_timeout=30000');
    assertOurs(connection);
    return connection;
  } catch (error) {
    connection.close();
    if (!isUnopenable(error)) throw error;
    const why = `SQLite needs ${path}-wal and ${path}-shm beside it, and this user cannot write to ${dirname(path)}`;
    throw new Error(`${path} cannot be read: ${why}`, { cause: error });
  }
}

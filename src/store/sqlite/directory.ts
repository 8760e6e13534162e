import { randomUUID } from 'node:crypto';
import { access, constants, mkdir, open, readFile, rename, stat, statfs, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { codeOf, reasonOf } from '../../error-reason.ts';
import { syncDirectory } from '../directory.ts';

/** The mark of a directory that has a store. It distinguishes a store that is gone from one that never was. */
const MARK_FILE = 'sluice.mark';

/** The file of version 0.2, which was kept by LMDB. */
const OLD_FILE = 'items.mdb';
/** What a file of SQLite begins with, and where its header says how many pages it has (fileformat2.html). */
const MAGIC = 'SQLite format 3\0';
const HEADER_BYTES = 100;
/** The version of the file in its header while it has no write-ahead log. */
const BACKUP = 1;

/**
 * Makes the directory of the store, and checks that this process can write to it. Rejects with an Error that says what
 * is wrong, also when there is a store of an earlier version, or a file that is not one or was cut short. Returns whether the
 * file exists and has something in it. `isOpen`: this process has the file open.
 */
export async function prepareDirectory(directory: string, file: string, isOpen: boolean): Promise<boolean> {
  const path = join(directory, file);
  await makeDirectory(resolve(directory)).catch(notWritable);
  const size = await sizeOf(path).catch(notWritable);
  if (size === null && (await sizeOf(join(directory, OLD_FILE))) !== null)
    throw new Error(
      `${join(directory, OLD_FILE)} is a store of sluice 0.2, which this version cannot read.\n` +
        'Export its rows with sluice 0.2 (sluice pull http://HOST:PORT/items -o items.ndjson), and import them with this version into another DATA_DIR.',
    );
  if (size === null || size === 0) {
    await access(directory, constants.W_OK | constants.X_OK).catch(notWritable);
    return false;
  }
  const fault = isOpen ? null : await faultOf(path);
  if (fault !== null) throw new Error(`${path} cannot be opened as the embedded store: ${fault}`);
  return true;
}

/**
 * What is wrong with a file, as far as its header shows. Null: nothing. The caller must not have it open: to open and close
 * it here would drop the locks that SQLite has on it.
 */
async function faultOf(path: string): Promise<string | null> {
  const file = await open(path, 'r');
  try {
    const { buffer } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
    if (buffer.toString('latin1', 0, MAGIC.length) !== MAGIC) return 'it is not an SQLite file';
    if ((await sizeOf(`${path}-wal`)) ?? 0)
      return buffer[18] === BACKUP
        ? `it is a backup, but ${path}-wal is of the store that was there before: remove ${path}-wal and ${path}-shm`
        : null; // the header may be ahead of the file
    const pageBytes = buffer.readUInt16BE(16) === 1 ? 65_536 : buffer.readUInt16BE(16);
    const wanted = pageBytes * buffer.readUInt32BE(28);
    const isKnown = buffer.readUInt32BE(24) === buffer.readUInt32BE(92);
    const { size } = await file.stat(); // last: a process that has just closed the store may have moved its log into it
    return isKnown && size < wanted
      ? `it is truncated to ${size} bytes, expected ${wanted}; restore it from a backup`
      : null;
  } finally {
    await file.close();
  }
}

/** Like recursive `mkdir`, which in Node never returns where a file system cannot make directories (/proc/a). */
async function makeDirectory(directory: string): Promise<void> {
  if (await isDirectory(directory)) return;
  if (dirname(directory) !== directory) await makeDirectory(dirname(directory));
  try {
    await mkdir(directory);
  } catch (error) {
    if (!(await isDirectory(directory))) throw error; // else another process created it first
  }
}

/** False when nothing exists there. Throws an Error when something other than a directory does. */
async function isDirectory(path: string): Promise<boolean> {
  const found = await unlessMissing(stat(path));
  if (found && !found.isDirectory()) throw new Error(`${path} is not a directory`);
  return found !== null;
}

export async function sizeOf(path: string): Promise<number | null> {
  return (await unlessMissing(stat(path)))?.size ?? null;
}

export async function unlessMissing<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

function notWritable(error: unknown): never {
  throw new Error(`DATA_DIR must be a directory that this process can write to: ${reasonOf(error)}`, {
    cause: error,
  });
}

interface Mark {
  readonly id: string;
  /** How often the store was stopped cleanly. */
  readonly stops: number;
}

/** Null: the directory never had a store. */
export async function readMark(directory: string): Promise<Mark | null> {
  const text = await unlessMissing(readFile(join(directory, MARK_FILE), 'utf8'));
  if (text === null) return null;
  const { id, stops } = JSON.parse(text) as Partial<Mark>;
  if (typeof id !== 'string' || typeof stops !== 'number')
    throw new Error(
      `${join(directory, MARK_FILE)} is damaged: remove it when the store beside it is the right one`,
    );
  return { id, stops };
}

export async function writeMark(directory: string, mark: Mark): Promise<void> {
  const path = join(directory, MARK_FILE);
  const unfinished = `${path}.${randomUUID()}`;
  await writeFile(unfinished, JSON.stringify(mark), { mode: 0o600, flush: true });
  await rename(unfinished, path);
  await syncDirectory(directory);
}

/** The error for a directory whose mark says that the store should be another one. */
export function storeGone(path: string, found: string): Error {
  return new Error(
    `${path} ${found}, but ${MARK_FILE} beside it says that there was a store: restore a backup, or remove ${MARK_FILE} to begin anew`,
  );
}

/** Types of file systems (statfs(2)) that keep files elsewhere, where the locks and maps of SQLite do not hold. */
const REMOTE: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0x65735546, 'FUSE or virtiofs'],
  [0x01021997, '9P'],
  [0x00c36400, 'Ceph'],
  [0x5346414f, 'AFS'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
]);

/** Those of local disks and of memory, on which a file may be mapped: ext, XFS, Btrfs, F2FS, ZFS, tmpfs, overlay. */
const LOCAL: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0x01021994, 0x794c7630,
]);

/** SQLite maps at most 2 GiB. */
const MMAP_BYTES = 0x7fff0000;

/** Bytes of a file that SQLite may map here. Throws an Error when the file system keeps files elsewhere. */
export async function mmapBytesIn(directory: string): Promise<number> {
  if (process.platform !== 'linux') return 0;
  const { type } = await statfs(directory);
  const remote = REMOTE.get(type >>> 0);
  if (remote !== undefined)
    throw new Error(
      `DATA_DIR ${directory} is on a file system of the kind ${remote}: the embedded store needs a local disk`,
    );
  return LOCAL.has(type) ? MMAP_BYTES : 0;
}

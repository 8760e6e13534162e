import { access, constants, mkdir, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { codeOf, reasonOf } from '../../../base/error-reason.ts';

/** The file of version 0.2, which was kept by LMDB. */
const OLD_FILE = 'items.mdb';
/**
 * Makes the directory of the store, and checks that this process can write to it. Rejects with an Error that says what
 * is wrong, also when there is a store of an earlier version. Returns whether the file exists and has something in it.
 */
export async function prepareDirectory(directory: string, file: string): Promise<boolean> {
  const path = join(directory, file);
  await makeDirectory(resolve(directory)).catch(notWritable);
  const size = await sizeOf(path).catch(notWritable);
  if (size === null && (await sizeOf(join(directory, OLD_FILE))) !== null)
    throw new Error(
      `${join(directory, OLD_FILE)} is a store of sluice 0.2, which this version cannot read.\n` +
        'It holds items, resources that imports have made, with their indexes, and users; its exports end with it.\n' +
        'Start sluice 0.2 on it, and take all of them over into another DATA_DIR with this version:\n' +
        '  GET /resources of 0.2 names the resources and their indexes; for items and each of them\n' +
        '  sluice pull http://HOST:PORT/items -o items.ndjson\n' +
        '  sluice import items.ndjson --into items (for others also --id and --index a,b)\n' +
        '  sluice users export http://HOST:PORT > users.ndjson\n' +
        '  sluice users import users.ndjson',
    );
  await access(directory, constants.R_OK | constants.W_OK | constants.X_OK).catch(notWritable);
  if (!size) return false;
  await access(path, constants.R_OK | constants.W_OK).catch(notWritable);
  return true;
}

/** Like recursive `mkdir`, which in Node never returns where a file system cannot make directories (/proc/a). */
async function makeDirectory(directory: string): Promise<void> {
  if (await isDirectory(directory)) return;
  if (dirname(directory) !== directory) await makeDirectory(dirname(directory));
  try {
    await mkdir(directory, { mode: 0o700 });
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

/**
 * SQLite maps at most 2 GiB. A file that another program shortens under the process may end it (SIGBUS). Without the map, each
 * of 100,000 rows by an index takes 4.0 us of CPU in place of 1.5, in a file of 110 MB, four turns; a walk takes 0.14, not 0.20.
 */
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

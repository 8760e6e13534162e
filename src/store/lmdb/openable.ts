import { mkdir, open, rm, stat, writeFile, type FileHandle } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { codeOf, reasonOf } from '../../thrown.ts';

/** The space that a new store needs at first. */
const PROBE = Buffer.alloc(64 * 1024);

/** An LMDB file begins with two pages of this size or more, each with a head of 24 bytes, the magic and a version. */
const SMALLEST_PAGE = 4096;
const MAGIC_AT = 24;
const MAGIC = 0xbeefc0de;
const VERSION_AT = 28;
const VERSION = 2;
/** Further fields of such a page, in the 64-bit layout (MDB_meta in mdb.c). */
const PAGE_BYTES_AT = 48;
const LAST_PAGE_AT = 144;
const TRANSACTION_AT = 152;
const META_BYTES = 160;
/** The last pages of a file may be free, and may then never have been written. */
const SPARE_PAGES = 256;

/**
 * Checks whether a store can be opened in this place, before lmdb tries. When opening fails, lmdb uses memory that it
 * has freed, which may end the process without a message. Rejects with an Error that says what is wrong.
 */
export async function assertOpenable(directory: string, file: string): Promise<void> {
  const path = join(directory, file);
  await makeDirectory(resolve(directory)).catch(notWritable);
  // An existing store may be opened on a full disk, because it can still be read. Without its lock file it would cause
  // a SIGBUS.
  const sizes = await Promise.all([sizeOf(path), sizeOf(`${path}-lock`)]).catch(notWritable);
  if (sizes.includes(0)) await probe(join(directory, `.${file}.${process.pid}`)).catch(notWritable);
  const fault = await faultOf(path, sizes[0]).catch(reasonOf);
  if (fault !== null) throw new Error(`${path} cannot be opened as the embedded store: ${fault}`);
}

/**
 * Like `mkdir` with `recursive: true`, which in Node never returns where a file system cannot make directories
 * (/proc/a).
 */
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

async function probe(path: string): Promise<void> {
  try {
    await writeFile(path, PROBE);
  } finally {
    await rm(path, { force: true });
  }
}

/** What is wrong with a file. Null when nothing is, or when it is empty. */
async function faultOf(path: string, size: number): Promise<string | null> {
  if (size === 0) return null;
  const file = await open(path, 'r+');
  try {
    const first = await metaAt(file, 0);
    if (size < 2 * SMALLEST_PAGE || first.readUInt32LE(MAGIC_AT) !== MAGIC) return 'it is not an LMDB file';
    const version = first.readUInt32LE(VERSION_AT);
    if (version !== VERSION) return `its LMDB data format is ${version}, expected ${VERSION}`;
    const pageBytes = first.readUInt32LE(PAGE_BYTES_AT);
    const second = await metaAt(file, pageBytes);
    const latest =
      second.readBigUInt64LE(TRANSACTION_AT) > first.readBigUInt64LE(TRANSACTION_AT) ? second : first;
    const wanted = (Number(latest.readBigUInt64LE(LAST_PAGE_AT)) + 1) * pageBytes;
    const { size: bytes } = await file.stat(); // read last: another process may be writing, and it writes pages first
    return bytes < wanted - SPARE_PAGES * pageBytes
      ? `it is truncated to ${bytes} bytes, expected about ${wanted}; restore it from a backup`
      : null;
  } finally {
    await file.close();
  }
}

/** A page's head and LMDB's description of the file in it (MDB_meta). Zeros beyond the end of the file. */
async function metaAt(file: FileHandle, at: number): Promise<Buffer> {
  const { buffer } = await file.read(Buffer.alloc(META_BYTES), 0, META_BYTES, at);
  return buffer;
}

/** The size of a file in bytes. 0 when it does not exist. */
async function sizeOf(path: string): Promise<number> {
  return (await unlessMissing(stat(path)))?.size ?? 0;
}

async function unlessMissing<T>(asked: Promise<T>): Promise<T | null> {
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

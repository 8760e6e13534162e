import { mkdir, open, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** As much as a new store needs at first. */
const PROBE = Buffer.alloc(64 * 1024);

/** An LMDB file begins with two pages of this size or more, each with a head of 24 bytes, the magic and a version. */
const SMALLEST_PAGE = 4096;
const MAGIC_AT = 24;
const MAGIC = 0xbeefc0de;
const VERSION = 2;

/**
 * Looks whether a store can be in this place, before lmdb does: when opening fails, lmdb uses memory it has freed, which
 * may end the process without a word. Rejects with an Error that says what is wrong.
 */
export async function checkPlace(directory: string, file: string): Promise<void> {
  const path = join(directory, file);
  await mkdir(directory, { recursive: true }).catch(notWritable);
  // A store that is there may be opened on a full disk: it can be read. Without its lock file it would meet SIGBUS.
  const sizes = await Promise.all([sizeOf(path), sizeOf(`${path}-lock`)]).catch(notWritable);
  if (sizes.includes(0)) await probe(join(directory, `.${file}.${process.pid}`)).catch(notWritable);
  const fault = await faultOf(path, sizes[0]).catch(messageOf);
  if (fault !== null) throw new Error(`${path} cannot be opened as the embedded store: ${fault}`);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function probe(path: string): Promise<void> {
  try {
    await writeFile(path, PROBE);
  } finally {
    await rm(path, { force: true });
  }
}

/** What is wrong with a file; null when nothing is, or it is empty. */
async function faultOf(path: string, size: number): Promise<string | null> {
  if (size === 0) return null;
  const file = await open(path, 'r+');
  try {
    const { buffer } = await file.read(Buffer.alloc(MAGIC_AT + 8), 0, MAGIC_AT + 8, 0);
    if (size < 2 * SMALLEST_PAGE || buffer.readUInt32LE(MAGIC_AT) !== MAGIC) return 'it is no LMDB file';
    const version = buffer.readUInt32LE(MAGIC_AT + 4);
    return version === VERSION ? null : `its LMDB data format is ${version}, expected ${VERSION}`;
  } finally {
    await file.close();
  }
}

/** 0 when there is no such file. */
async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 0;
    throw error;
  }
}

function notWritable(error: unknown): never {
  throw new Error(`DATA_DIR must be a directory this process can write to: ${messageOf(error)}`, {
    cause: error,
  });
}

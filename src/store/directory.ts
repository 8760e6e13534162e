import { constants } from 'node:fs';
import { access, mkdir, open, readdir, rename, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, storeUnavailable } from '../errors.ts';
import { FileGoneError, isFileName, type FileStore, type FileWriter } from './files.ts';
import { codeOf, reasonOf } from '../error-reason.ts';

/** The suffix of an unfinished file's name. */
const UNFINISHED = '.part';
const READ_BYTES = 256 * 1024;
/** Symbolic links are not followed: the server creates every file here itself. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW;
const MAKE = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;

/** Rejects with an Error that says why files cannot be created in this directory. It may be missing. */
export async function assertWritable(path: string): Promise<void> {
  try {
    await access(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT')
      throw new Error(`The directory ${path} of export files cannot be written: ${reasonOf(error)}`, {
        cause: error,
      });
  }
}

/** Files in a local directory. The directory is created when it is first needed. */
export class Directory implements FileStore {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async create(name: string): Promise<FileWriter> {
    const path = this.#pathOf(name);
    await withStoreErrors(mkdir(this.#path, { recursive: true }));
    const file = await withStoreErrors(open(path + UNFINISHED, MAKE, 0o600));
    return new Writer(file, path, this.#path);
  }

  async *read(name: string, start: number, end: number): AsyncGenerator<Uint8Array, void, undefined> {
    const file = await this.#open(name);
    try {
      const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, Math.max(1, end - start)));
      for (let at = start; at < end;) {
        const { bytesRead } = await withStoreErrors(
          file.read(buffer, 0, Math.min(buffer.length, end - at), at),
        );
        if (bytesRead === 0) throw new FileGoneError(name);
        yield buffer.subarray(0, bytesRead);
        at += bytesRead;
      }
    } finally {
      await file.close();
    }
  }

  async size(name: string): Promise<number | null> {
    if (!isFileName(name)) return null;
    const file = await openExisting(this.#pathOf(name));
    if (!file) return null;
    try {
      const stat = await file.stat();
      return stat.isFile() ? stat.size : null;
    } finally {
      await file.close();
    }
  }

  async remove(name: string): Promise<void> {
    const path = this.#pathOf(name);
    await Promise.all([path, path + UNFINISHED].map((file) => withStoreErrors(rm(file, { force: true }))));
  }

  async names(stem?: string): Promise<readonly string[]> {
    const entries = await readdir(this.#path).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return [];
      throw fault(error);
    });
    const names = entries.map((entry) => entry.replace(/\.part$/, '')).filter(isFileName);
    return stem === undefined ? names : names.filter((name) => name.startsWith(`${stem}.`));
  }

  async #open(name: string): Promise<FileHandle> {
    const file = await openExisting(this.#pathOf(name));
    if (!file) throw new FileGoneError(name);
    return file;
  }

  #pathOf(name: string): string {
    if (!isFileName(name)) throw new TypeError(`not a file's name: ${JSON.stringify(name)}`);
    return join(this.#path, name);
  }
}

class Writer implements FileWriter {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #directory: string;
  #isOpen = true;

  constructor(file: FileHandle, path: string, directory: string) {
    this.#file = file;
    this.#path = path;
    this.#directory = directory;
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const { bytesWritten } = await withStoreErrors(this.#file.write(bytes, at, bytes.length - at));
      at += bytesWritten;
    }
  }

  async finish(): Promise<void> {
    await withStoreErrors(this.#file.sync());
    await this.close();
    await withStoreErrors(rename(this.#path + UNFINISHED, this.#path));
    await withStoreErrors(syncDirectory(this.#directory));
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await withStoreErrors(this.#file.close());
  }
}

/** A new name is durable only after its directory is synced. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Returns null when the file does not exist or is a symbolic link. */
async function openExisting(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, READ);
  } catch (error) {
    if (['ENOENT', 'ELOOP'].includes(String(codeOf(error)))) return null;
    throw fault(error);
  }
}

async function withStoreErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw fault(error);
  }
}

function fault(error: unknown): unknown {
  switch (String(codeOf(error))) {
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return new AppError('insufficient-storage', 'The disk of the export files is full.', { cause: error });
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
    case 'ENOTDIR':
    case 'EEXIST': // the directory is a file
      return new AppError(
        'insufficient-storage',
        `The directory of export files cannot be written (${String(codeOf(error))}).`,
        { cause: error },
      );
    case 'EIO':
    case 'EMFILE':
    case 'ENFILE':
      return storeUnavailable(error);
    default:
      return error;
  }
}

import { constants } from 'node:fs';
import { access, lstat, mkdir, open, readdir, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { FileGoneError, isFileName, type FileStore, type FileWriter } from '../files.ts';
import { codeOf, reasonOf } from '../../base/error-reason.ts';
import { FolderFaults } from './faults.ts';

const UNFINISHED = '.part';
const FAULTS = new FolderFaults('export files');
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

/** Files in a local directory, which may become known late. It is created when it is first needed. */
export function directoryFiles(directory: string | (() => Promise<string>)): FileStore {
  const find = typeof directory === 'string' ? () => Promise.resolve(directory) : directory;
  const pathOf = async (name: string): Promise<string> => {
    if (!isFileName(name)) throw new TypeError(`not a file's name: ${JSON.stringify(name)}`);
    return join(await find(), name);
  };
  return {
    async create(name) {
      const path = await pathOf(name);
      await mkdir(dirname(path), { recursive: true }).catch(FAULTS.fail);
      return writerOf(await open(path + UNFINISHED, MAKE, 0o600).catch(FAULTS.fail), path);
    },
    async *read(name, start, end) {
      yield* readFrom(await pathOf(name), name, start, end);
    },
    async size(name) {
      const found = isFileName(name)
        ? await lstat(await pathOf(name)).catch(FAULTS.unlessMissing(null))
        : null;
      return found?.isFile() === true ? found.size : null;
    },
    async remove(name) {
      const path = await pathOf(name);
      await Promise.all(
        [path, path + UNFINISHED].map((file) => rm(file, { force: true }).catch(FAULTS.fail)),
      );
    },
    async names(stem) {
      const entries = await readdir(await find()).catch(FAULTS.unlessMissing([]));
      const names = entries.map((entry) => entry.replace(/\.part$/, '')).filter(isFileName);
      return stem === undefined ? names : names.filter((name) => name.startsWith(`${stem}.`));
    },
  };
}

/** Yields bytes of a file. Throws FileGoneError with its name when bytes are missing. */
export async function* readFrom(
  path: string,
  name: string,
  start: number,
  end: number,
  faults: FolderFaults = FAULTS,
): AsyncGenerator<Uint8Array, void, undefined> {
  const file = await open(path, READ).catch((error: unknown) => {
    throw ['ENOENT', 'ELOOP'].includes(String(codeOf(error))) ? new FileGoneError(name) : faults.of(error);
  });
  try {
    const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, Math.max(1, end - start)));
    for (let at = start; at < end;) {
      const { bytesRead } = await file
        .read(buffer, 0, Math.min(buffer.length, end - at), at)
        .catch(faults.fail);
      if (bytesRead === 0) throw new FileGoneError(name);
      yield buffer.subarray(0, bytesRead);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
}

function writerOf(file: FileHandle, path: string): FileWriter {
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (!isOpen) return;
    isOpen = false;
    await file.close().catch(FAULTS.fail);
  };
  return {
    async write(bytes) {
      for (let at = 0; at < bytes.length;)
        at += (await file.write(bytes, at, bytes.length - at).catch(FAULTS.fail)).bytesWritten;
    },
    async finish() {
      await file.sync().catch(FAULTS.fail);
      await close();
      await rename(path + UNFINISHED, path).catch(FAULTS.fail);
      await syncDirectory(dirname(path)).catch(FAULTS.fail);
    },
    close,
  };
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

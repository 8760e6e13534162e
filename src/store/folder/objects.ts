import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { access, link, lstat, mkdir, open, opendir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { codeOf } from '../../base/error-reason.ts';
import { isObjectPath, type ObjectStore, type StoredObject } from '../objects.ts';
import { readFrom, syncDirectory } from './directory.ts';
import { FolderFaults } from './faults.ts';

/** The folder of files that are being written. No object's path can name it. */
const UNFINISHED = '@unfinished';
/** A file there that is older was left by a writer that was killed. Milliseconds. */
const LEFT_MS = 60 * 60_000;
/** A web server of another user may read them, whatever this process's umask says. */
const FILE_MODE = 0o644;
const FOLDER_MODE = 0o755;
const READ = constants.O_RDONLY | constants.O_NOFOLLOW;
const FAULTS = new FolderFaults('files of editions');

/** Objects as files in a folder, each at its path. It is made when it is first needed. */
export class FolderObjects implements ObjectStore {
  readonly #root: string;
  readonly #now: () => number;
  /** The folders that this process has made or found, durable with their names. */
  readonly #made = new Set<string>();

  /** `now`: milliseconds since 1970. */
  constructor(root: string, now: () => number = Date.now) {
    this.#root = root;
    this.#now = now;
  }

  async put(path: string, bytes: Uint8Array, { isNew = false } = {}): Promise<boolean> {
    const to = this.#pathOf(path);
    try {
      if (isNew && (await isThere(to))) return await settled(to);
      const unfinished = await this.#write(bytes);
      try {
        await this.#makeFolder(dirname(to));
        if (!isNew) await rename(unfinished, to);
        else if (!(await linked(unfinished, to))) return await settled(to);
        await syncDirectory(dirname(to));
        return true;
      } finally {
        await rm(unfinished, { force: true });
      }
    } catch (error) {
      if (codeOf(error) === 'ENOENT') this.#made.clear(); // somebody has removed a folder: the next call makes it again
      throw FAULTS.of(error);
    }
  }

  async get(path: string): Promise<Uint8Array | null> {
    return readFile(this.#pathOf(path), { flag: READ }).catch(unlessMissing);
  }

  async *read(path: string, start: number, end: number): AsyncGenerator<Uint8Array, void, undefined> {
    yield* readFrom(this.#pathOf(path), path, start, end, FAULTS);
  }

  async size(path: string): Promise<number | null> {
    const found = await lstat(this.#pathOf(path)).catch(unlessMissing);
    return found?.isFile() === true ? found.size : null;
  }

  /** Also removes what writers left that were killed. */
  async *list(prefix: string): AsyncGenerator<StoredObject, void, undefined> {
    await this.#sweep();
    const folder = join(this.#root, prefix.slice(0, prefix.lastIndexOf('/') + 1));
    for await (const file of filesIn(folder)) {
      const path = relative(this.#root, file);
      const found =
        path.startsWith(prefix) && isObjectPath(path) ? await lstat(file).catch(unlessMissing) : null;
      if (found) yield { path, bytes: found.size, storedAt: found.mtimeMs };
    }
  }

  async remove(path: string): Promise<void> {
    await rm(this.#pathOf(path), { force: true }).catch(FAULTS.fail);
  }

  async ping(): Promise<void> {
    await access(this.#root, constants.R_OK | constants.W_OK | constants.X_OK).catch(unlessMissing);
  }

  close(): void {
    this.#made.clear();
  }

  #pathOf(path: string): string {
    if (!isObjectPath(path)) throw new TypeError(`not an object's path: ${JSON.stringify(path)}`);
    return join(this.#root, path);
  }

  /** Writes a file that has no name yet, and is durable. */
  async #write(bytes: Uint8Array): Promise<string> {
    await this.#makeFolder(join(this.#root, UNFINISHED));
    const path = join(this.#root, UNFINISHED, randomBytes(16).toString('hex'));
    try {
      const file = await open(path, 'wx');
      try {
        await file.writeFile(bytes);
        await file.chmod(FILE_MODE);
        await file.sync();
      } finally {
        await file.close();
      }
      return path;
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
  }

  async #makeFolder(folder: string): Promise<void> {
    if (this.#made.has(folder)) return;
    if (folder !== this.#root) await this.#makeFolder(dirname(folder));
    else await mkdir(dirname(folder), { recursive: true });
    try {
      await mkdir(folder);
      const made = await open(folder);
      await made.chmod(FOLDER_MODE).finally(() => made.close());
    } catch (error) {
      if (codeOf(error) !== 'EEXIST' || !(await lstat(folder)).isDirectory()) throw error;
    }
    await syncDirectory(dirname(folder));
    this.#made.add(folder);
  }

  async #sweep(): Promise<void> {
    for await (const file of filesIn(join(this.#root, UNFINISHED))) {
      const found = await lstat(file).catch(unlessMissing);
      if (found && this.#now() - found.mtimeMs > LEFT_MS) await rm(file, { force: true }).catch(FAULTS.fail);
    }
  }
}

/** All files below a folder. */
async function* filesIn(folder: string): AsyncGenerator<string, void, undefined> {
  const entries = await opendir(folder).catch(unlessMissing);
  if (!entries) return;
  for await (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && entry.name !== UNFINISHED) yield* filesIn(path);
    else if (entry.isFile()) yield path;
  }
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(unlessMissing)) !== null;
}

/** Gives a file a name that none has. False: one has. */
async function linked(file: string, to: string): Promise<boolean> {
  try {
    await link(file, to);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** The name that somebody else gave is durable, too. False: this call has stored nothing. */
async function settled(path: string): Promise<false> {
  await syncDirectory(dirname(path));
  return false;
}

const MISSING: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EISDIR']);

function unlessMissing(error: unknown): null {
  if (MISSING.has(codeOf(error))) return null;
  throw FAULTS.of(error);
}

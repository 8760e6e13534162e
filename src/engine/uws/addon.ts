import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { fitToOlderGlibc } from './fit.ts';
import { reasonOf } from '../../base/error-reason.ts';

const require = createRequire(import.meta.url);

/**
 * SHA-256 of the Linux binaries that can be fitted: version 20.57.0 for Node 20, 22, 24 and 25 (ABI 115, 127, 137, 141),
 * on arm64 and on x64. No other file is changed.
 */
const KNOWN: ReadonlySet<string> = new Set([
  '6bdbc8ff976b4371af1906175e9025804bacc38a414969f4f02314e6b99f206c',
  '82b79bd18d1e3563de336156005bd01b7f39fc387b65173d69a29da4ee79f895',
  '88618b30ddf6b2b62310db89f40a701616676352aac5e0f6184dd8ef876199ce',
  '81d0186dd1549ed6a7f47e68e323573fc27d69d2920527654ce2dd993af2b0ec',
  '5b126ee00bf754b02e97e4c27090365a8562c5820c93f93918ac2212d4503e91',
  '4b55b1f2cb7a7913febbb65a89496412b96af77e838552980092ba6b33723aac',
  '98128405dba2fb608448e921a979530f70c946a2cc9889c15f2fa70c2d00ab05',
  '813d788b347c6fd76b779d8932311ec05a044e612b4b83af220f16e6ea789683',
]);

interface AddonOptions {
  /** The absolute path of the `.node` file as installed. The file is not changed. */
  readonly file: string;
  /** The directory for a fitted copy. It is created when missing, for this user alone. */
  readonly cacheDirectory: string;
  /** Loads a `.node` file. Tests replace it. */
  readonly load?: (file: string) => unknown;
}

/**
 * Loads a native addon. When the C library here is too old for the addon and the file is a known one, a copy fitted
 * to older libraries is loaded instead. Throws an Error that says which way failed and why.
 */
export function loadAddon({ file, cacheDirectory, load = require }: AddonOptions): unknown {
  let tooNew: Error;
  try {
    return load(file);
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes("version `GLIBC_2.38' not found")) throw error;
    tooNew = error;
  }
  try {
    return loadFitted(file, cacheDirectory, load);
  } catch (error) {
    const reason = reasonOf(error);
    throw new Error(
      `${basename(file)} requires a newer C library, and the adapted copy could not be used: ${reason}`,
      {
        cause: tooNew,
      },
    );
  }
}

/** Loads a copy that is there for this moment alone, so that nobody can change it and none needs to be checked later. */
function loadFitted(file: string, cacheDirectory: string, load: (file: string) => unknown): unknown {
  const original = readFileSync(file);
  const hash = createHash('sha256').update(original).digest('hex');
  if (!KNOWN.has(hash)) throw new Error(`its SHA-256 ${hash} is unknown`);
  makeDirectory(resolve(cacheDirectory));
  assertPrivate(cacheDirectory);
  const folder = mkdtempSync(join(cacheDirectory, 'fitted-'));
  try {
    const copy = join(folder, basename(file));
    writeFileSync(copy, fitToOlderGlibc(original), { mode: 0o600 });
    return load(copy);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** As `mkdirSync` with `recursive: true`, which Node never ends where a file system makes no directories (/proc/a). */
function makeDirectory(directory: string): void {
  if (existsSync(directory)) return;
  makeDirectory(dirname(directory));
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    if (!existsSync(directory)) throw error; // else another process was faster
  }
}

/** Another user who can write there could replace the folder of the copy before it is loaded. */
function assertPrivate(directory: string): void {
  const { uid, mode } = statSync(directory);
  if (uid !== process.getuid?.() || (mode & 0o022) !== 0)
    throw new Error(`the directory ${directory} belongs to another user, or other users can write to it`);
}

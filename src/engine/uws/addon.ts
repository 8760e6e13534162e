import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { fitToOlderGlibc } from './fit.ts';
import { codeOf, reasonOf } from '../../error-reason.ts';

const require = createRequire(import.meta.url);

/**
 * SHA-256 of the Linux binaries that can be fitted, and of the fitted files: version 20.57.0 for Node 20, 22, 24 and
 * 25 (ABI 115, 127, 137, 141). No other file is changed.
 */
const FITTED: Readonly<Record<string, string>> = {
  // arm64
  '6bdbc8ff976b4371af1906175e9025804bacc38a414969f4f02314e6b99f206c':
    '68016401b908e59200b227ade8fe6b36bc9f8e30892e54cefd590a960612d7a6',
  '82b79bd18d1e3563de336156005bd01b7f39fc387b65173d69a29da4ee79f895':
    'b28ee349e8a15aa5fd30988fc3935eb1b8898e44f27f2ae903ad9e959567c1e6',
  '88618b30ddf6b2b62310db89f40a701616676352aac5e0f6184dd8ef876199ce':
    '84c03ca18de632e52cce378f073f8b008c0817c957d2e475284ce08f75c88a77',
  '81d0186dd1549ed6a7f47e68e323573fc27d69d2920527654ce2dd993af2b0ec':
    'de517c5f4cd31f4431fc07e2eb212924b0cd02e770679a36ed063b6b47c1c017',
  // x64
  '5b126ee00bf754b02e97e4c27090365a8562c5820c93f93918ac2212d4503e91':
    '0fdb9722352c4e0f519b42ad8b0c2bd4544b2c27484c1d49ddf143bfd1637cbb',
  '4b55b1f2cb7a7913febbb65a89496412b96af77e838552980092ba6b33723aac':
    '4ea0943df7d3202b3ada5eb01c40c37c63bb192fd9c7b1abae5082c5cc1f2803',
  '98128405dba2fb608448e921a979530f70c946a2cc9889c15f2fa70c2d00ab05':
    '8d5817f3a52803cb69a0e3d54f6487b533fda603aa63dab8ea09f9762d992e0b',
  '813d788b347c6fd76b779d8932311ec05a044e612b4b83af220f16e6ea789683':
    '395fee5c7a644ad0964cc26651b5dd12833c147123c69dbe938fe17eb13a2760',
};

export interface AddonOptions {
  /** The absolute path of the `.node` file as installed. The file is not changed. */
  readonly file: string;
  /** The directory for a fitted copy. It is created when missing, for this user alone. */
  readonly cacheDirectory: string;
  /** Loads a `.node` file. Tests replace it. */
  readonly load?: (file: string) => unknown;
}

/**
 * Loads a native addon. When the C library here is too old for the addon and the file is a known one, a copy fitted
 * to older libraries is made in the cache folder and loaded instead. Throws an Error that says which way failed and
 * why.
 */
export function loadAddon({ file, cacheDirectory, load = require }: AddonOptions): unknown {
  let tooNew: Error;
  try {
    return load(file);
  } catch (error) {
    if (!(error instanceof Error) || !needsNewerGlibc(error)) throw error;
    tooNew = error;
  }
  try {
    return load(fittedCopy(file, cacheDirectory));
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

function needsNewerGlibc(error: Error): boolean {
  return error.message.includes("version `GLIBC_2.38' not found");
}

/**
 * Returns the path of a fitted copy whose bytes were just checked. The copy is made when it is missing or has other
 * bytes.
 */
function fittedCopy(file: string, cacheDirectory: string): string {
  const original = readFileSync(file);
  const originalHash = sha256(original);
  const fittedHash = FITTED[originalHash];
  if (fittedHash === undefined) throw new Error(`its SHA-256 ${originalHash} is unknown`);
  makeDirectory(resolve(cacheDirectory));
  assertPrivate(cacheDirectory);
  const copy = join(cacheDirectory, `${fittedHash.slice(0, 16)}-${basename(file)}`);
  if (hashOf(copy) === fittedHash) return copy;

  const fitted = fitToOlderGlibc(original);
  if (sha256(fitted) !== fittedHash) throw new Error('the adapted copy has an unexpected SHA-256');
  const draft = join(cacheDirectory, `${randomUUID()}.tmp`);
  try {
    writeFileSync(draft, fitted, { mode: 0o600, flag: 'wx' });
    renameSync(draft, copy); // a second starting process sees the old or the whole new file
  } finally {
    rmSync(draft, { force: true });
  }
  if (hashOf(copy) !== fittedHash) throw new Error(`${copy} has other content than was written to it`);
  return copy;
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

/** Another user who can write there could replace the file between the check and the load. */
function assertPrivate(directory: string): void {
  const found = statSync(directory);
  const { uid, mode } = found;
  if (!found.isDirectory()) throw new Error(`${directory} is not a directory`);
  if (uid !== process.getuid?.() || (mode & 0o022) !== 0) {
    throw new Error(`the directory ${directory} belongs to another user, or other users can write to it`);
  }
}

/** The SHA-256 of a file; null when there is no such file. */
function hashOf(file: string): string | null {
  try {
    return sha256(readFileSync(file));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

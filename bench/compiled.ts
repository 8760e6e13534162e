import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..');
const OUT = join(ROOT, 'node_modules/.cache/bench');
const TSC = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const SQLITE = ['rows.wasm', 'worker.mjs'].map((file) => `src/store/sqlite/file/${file}`);
const run = promisify(execFile);

let compiling: Promise<void> | null = null;

/**
 * The compiled JavaScript of a measured program. sluice is already built, and the same compiler compiles
 * peers and limits. tsx would make a page a tenth more expensive, which a peer must not pay for.
 */
export async function compiled(program: string): Promise<string> {
  if (!program.endsWith('.ts')) return program;
  await (compiling ??= compile());
  return join(OUT, relative(ROOT, program).replace(/\.ts$/, '.js'));
}

async function compile(): Promise<void> {
  await run(process.execPath, [TSC, '-p', join(import.meta.dirname, 'tsconfig.json')]);
  // package.json marks these files as modules, and has their version.
  for (const file of ['package.json', 'src/rows/wasm/transcode.wasm', ...SQLITE]) {
    await mkdir(dirname(join(OUT, file)), { recursive: true });
    await copyFile(join(ROOT, file), join(OUT, file));
  }
}

/** Builds dist when src is newer. */
export async function buildProgram(): Promise<void> {
  const building = spawn(process.execPath, [join(ROOT, 'src/build.mjs'), '--if-stale'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = (await once(building, 'exit')) as [number | null];
  if (code !== 0) throw new Error('src does not build');
}

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..');
const OUT = join(ROOT, 'node_modules/.cache/bench');
const TSC = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const run = promisify(execFile);

let compiling: Promise<void> | null = null;

/**
 * The JavaScript of a program under measurement: sluice is built already, peers and limits are compiled by the same
 * compiler. Through tsx a page costs a tenth more, which a peer must not pay.
 */
export async function compiled(program: string): Promise<string> {
  if (!program.endsWith('.ts')) return program;
  await (compiling ??= compile());
  return join(OUT, relative(ROOT, program).replace(/\.ts$/, '.js'));
}

async function compile(): Promise<void> {
  await run(process.execPath, [TSC, '-p', join(import.meta.dirname, 'tsconfig.json')]);
  // Says that these files are modules, and which version they are of.
  await copyFile(join(ROOT, 'package.json'), join(OUT, 'package.json'));
}

/** Builds dist where src is newer. */
export async function buildProgram(): Promise<void> {
  const building = spawn(process.execPath, [join(ROOT, 'src/build.mjs'), '--if-stale'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = (await once(building, 'exit')) as [number | null];
  if (code !== 0) throw new Error('src does not build');
}

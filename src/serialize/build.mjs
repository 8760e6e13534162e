/**
 * Builds transcode.wasm from transcode.as.ts and what that imports, beside them.
 *
 *   node src/serialize/build.mjs                 build
 *   node src/serialize/build.mjs --if-missing    build unless it is there and newer than its sources
 *   node src/serialize/build.mjs --copy dist     copy what was built to dist/serialize/
 */
import { copyFile, mkdir, readdir, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const here = fileURLToPath(new URL('.', import.meta.url));
const TARGET = join(here, 'transcode.wasm');

const FLAGS = [
  '-O3',
  '--noAssert',
  '--enable=simd',
  // No allocation and no garbage: the stub runtime, static data from address 1024 on, far inside the 4 reserved pages.
  '--runtime=stub',
  '--memoryBase=1024',
  '--importMemory',
  '--initialMemory=4',
  '--noExportMemory',
];

const { values: flags } = parseArgs({
  options: { 'if-missing': { type: 'boolean' }, copy: { type: 'string' } },
});
if (flags.copy) await copyTo(join(flags.copy, 'serialize'));
else if (!flags['if-missing'] || !(await isFresh())) await build();

async function isFresh() {
  const names = (await readdir(here)).filter((name) => name.endsWith('.as.ts'));
  const sources = await Promise.all(names.map((name) => changedAt(join(here, name))));
  return (await changedAt(TARGET)) > Math.max(...sources);
}

/** @param {string} file */
async function changedAt(file) {
  try {
    return (await stat(file)).mtimeMs;
  } catch (error) {
    if (error.code === 'ENOENT') return 0;
    throw error;
  }
}

async function build() {
  const asc = await compiler();
  if (!asc) {
    console.log(
      'transcode.wasm is not built: assemblyscript is not installed (it is a devDependency). ' +
        'Items will be written by the slower JavaScript transcoder.',
    );
    return;
  }
  let wasm;
  const { error, stderr } = await asc.main(
    ['transcode.as.ts', '--baseDir', here, '-o', 'transcode.wasm', ...FLAGS],
    {
      writeFile: (name, contents) => {
        if (name === 'transcode.wasm') wasm = contents;
      },
    },
  );
  if (error || !wasm) {
    console.error(stderr.toString());
    throw error ?? new Error('asc wrote no transcode.wasm');
  }
  // Whole or not at all: a server that starts meanwhile must not load half a module.
  const unfinished = `${TARGET}.${process.pid}`;
  await writeFile(unfinished, wasm);
  await rename(unfinished, TARGET);
}

/** The compiler's API; null in an installation without development dependencies. */
async function compiler() {
  try {
    return await import('assemblyscript/asc');
  } catch (error) {
    if (error.code === 'ERR_MODULE_NOT_FOUND') return null;
    throw error;
  }
}

/** @param {string} folder */
async function copyTo(folder) {
  await mkdir(folder, { recursive: true });
  await copyFile(TARGET, join(folder, 'transcode.wasm'));
}

/**
 * Builds dist, the program that `npm start`, the package, the container, the benchmark and the tests' servers
 * run.
 *
 *   node src/build.mjs               build
 *   node src/build.mjs --if-stale    build only when a file below src is newer than dist
 *
 * transcode.wasm, Scalar's script, the explorer page and the clients are built below src, where tests find them, and
 * copied into dist. Without development dependencies there is no compiler. The script then builds nothing and says so
 * in one line.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { runInNewContext } from 'node:vm';
import { INSTEAD_OF_ZLIB, licensesOf, makeClients, REQUIRE } from './build-clients.mjs';

const SRC = import.meta.dirname;
const ROOT = dirname(SRC);
const DIST = join(ROOT, 'dist');
/** Written last. A build without it was interrupted. */
const STAMP = join(DIST, '.built');

const WASM = 'rows/wasm/transcode.wasm';
/** Checks the rows of the embedded store. */
const ROWS_WASM = 'store/sqlite/file/rows.wasm';
/** Finds the bytes that a table of CSV is cut at. */
const MARKS_WASM = 'import/csv-marks.wasm';
const SCALAR = 'web/scalar.js';
const SCALAR_SOURCE = join(ROOT, 'node_modules/@scalar/fastify-api-reference/dist/index.js');
/** The script and the styles of the explorer page, each made of many files and a library. */
const PAGE = ['web/explorer.js', 'web/style.css'];
/** The clients that the server hands out. */
const CLIENTS = 'web/clients';
/** What they are made of beside files of src. */
const SOURCES_OF_CLIENTS = /^(javascript|python\/(src|pyproject|README))((?!__pycache__).)*$/;
const ASSETS = [
  WASM,
  ROWS_WASM,
  MARKS_WASM,
  SCALAR,
  ...PAGE,
  CLIENTS,
  'import/sample',
  'web/page/index.html',
  'web/page/icon.svg',
  'web/reference',
  'base/low-priority.mjs',
  'editions/delta/checkpoint-schema.mjs',
  'editions/delta/columns.mjs',
  'editions/delta/parquet-thread.mjs',
  'editions/delta/values.mjs',
  'pipeline/parquet-thread.mjs',
  'store/sqlite/file/worker.mjs',
];
const BUILT = [WASM, ROWS_WASM, MARKS_WASM, SCALAR, ...PAGE];

const WASM_FLAGS = [
  '-O3',
  '--noAssert',
  '--enable=simd',
  // The program allocates nothing and has no garbage. It uses the stub runtime, with static data from address
  // 1024 on, far inside the 4 reserved pages.
  '--runtime=stub',
  '--memoryBase=1024',
  '--importMemory',
  '--initialMemory=4',
  '--noExportMemory',
];

const missing = ['typescript', 'assemblyscript', '@scalar/fastify-api-reference', 'esbuild'].filter(
  (tool) => !existsSync(join(ROOT, 'node_modules', tool)),
);
const ifStale = process.argv.includes('--if-stale');
if (missing.length > 0)
  console.log(`sluice: nothing is built: ${missing.join(', ')} not installed (development dependencies).`);
else if (!ifStale || (await isStale())) await build();

async function build() {
  await rm(DIST, { recursive: true, force: true });
  const sources = await filesOf('rows/wasm', (name) => name.endsWith('.as.ts'));
  if (await isOlder(join(SRC, WASM), sources)) await buildWasm('module.as.ts', WASM);
  const checks = await filesOf('store/sqlite/file', (name) => name.endsWith('.as.ts'));
  if (await isOlder(join(SRC, ROWS_WASM), checks)) await buildWasm('rows.as.ts', ROWS_WASM);
  const marks = await filesOf('import', (name) => name.endsWith('.as.ts'));
  if (await isOlder(join(SRC, MARKS_WASM), marks)) await buildWasm('csv-marks.as.ts', MARKS_WASM);
  if (await isOlder(join(SRC, SCALAR), [SCALAR_SOURCE])) await buildScalar();
  const pages = [...(await filesOf('web/page', () => true)), ...(await filesOf('pull', () => true))];
  if (await isOlder(join(SRC, PAGE[0]), pages)) await buildPage();
  await buildClients();
  await Promise.all([bundleProgram(), writeTypes()]);
  for (const asset of ASSETS) await cp(join(SRC, asset), join(DIST, asset), { recursive: true });
  await writeFile(STAMP, '');
}

async function isStale() {
  const isBuiltFrom = (name) =>
    !BUILT.includes(name) && !`${name}/`.startsWith(`${CLIENTS}/`) && !name.endsWith('DESIGN.md');
  const own = await filesOf('.', isBuiltFrom);
  return isOlder(STAMP, [...own, ...(await filesOf('../clients', (name) => SOURCES_OF_CLIENTS.test(name)))]);
}

/**
 * Makes few files of the program and its libraries: opening a thousand took half of a start. What only some starts need
 * is in files of its own. Outside stay libraries that load files of their own, and those that users may add.
 */
async function bundleProgram() {
  const { build: bundle } = await import('esbuild');
  const { metafile } = await bundle({
    entryPoints: [join(SRC, 'process/cli.ts'), join(SRC, 'pull/pull.ts')],
    outdir: DIST,
    absWorkingDir: ROOT,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    charset: 'utf8',
    external: ['uWebSockets.js', '@photostructure/sqlite', 'parquet-wasm', 'bullmq', 'ioredis'],
    banner: { js: REQUIRE },
    plugins: [{ name: 'sources', setup: prepareSources }],
    sourcemap: true,
    sourcesContent: false,
    metafile: true,
    tsconfigRaw: '{}',
  });
  await writeFile(join(DIST, 'LICENSES'), await licensesOf(Object.keys(metafile.inputs)));
}

/** Shows esbuild which libraries src loads by `require`, and rewrites literals: see `beforeSpreads`. */
async function prepareSources({ onLoad }) {
  const { default: ts } = await import('typescript');
  onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, async ({ path }) => ({
    contents: beforeSpreads(
      ts,
      (await readFile(path, 'utf8')).replaceAll("createRequire(import.meta.url)('", "require('"),
    ),
    loader: 'ts',
  }));
}

/**
 * Makes `{ ...{}, ...a, b }` of each `{ ...a, b }`. For the shorter form V8 makes new hidden classes each time (Node 20),
 * which cost a microsecond and 200 to 500 bytes of the old generation.
 */
function beforeSpreads(ts, text) {
  const places = [];
  const visit = (node) => {
    const [first, second] = (ts.isObjectLiteralExpression(node) && node.properties) || [];
    if (second && ts.isSpreadAssignment(first)) places.push(first.getStart(source));
    ts.forEachChild(node, visit);
  };
  const source = ts.createSourceFile('', text, ts.ScriptTarget.Latest);
  visit(source);
  return [0, ...places].map((at, n) => (n > 0 ? '...{}, ' : '') + text.slice(at, places[n])).join('');
}

/** The types of `sluice/pull`. */
async function writeTypes() {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const compiling = spawn(process.execPath, [tsc, '-p', join(ROOT, 'tsconfig.build.json')], {
    stdio: 'inherit',
  });
  const [code] = await once(compiling, 'exit');
  if (code !== 0) process.exit(1); // the compiler has reported the reason
}

async function buildWasm(source, target) {
  const { default: asc } = await import('assemblyscript/asc');
  let wasm;
  const { error, stderr } = await asc.main(
    [source, '--baseDir', join(SRC, dirname(target)), '-o', 'out.wasm', ...WASM_FLAGS],
    {
      writeFile: (name, contents) => {
        if (name === 'out.wasm') wasm = contents;
      },
    },
  );
  if (error || !wasm) {
    process.stderr.write(stderr.toString());
    throw error ?? new Error(`the AssemblyScript compiler wrote no ${target}`);
  }
  await writeWhole(join(SRC, target), wasm);
}

/**
 * Bundles the explorer page. Its types are checked by `npm run check`. The notices of libraries stay at the end of
 * each file.
 */
async function buildPage() {
  const { build: bundle } = await import('esbuild');
  const { outputFiles } = await bundle({
    entryPoints: { explorer: join(SRC, 'web/page/main.ts'), style: join(SRC, 'web/page/styles/style.css') },
    outdir: join(SRC, 'web'),
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    alias: INSTEAD_OF_ZLIB,
    target: ['chrome120', 'firefox121', 'safari17.4'],
    legalComments: 'eof',
    tsconfigRaw: '{}',
  });
  for (const { path, contents } of outputFiles.toReversed()) await writeWhole(path, contents);
}

/** Makes the clients anew, and removes those of another version. */
async function buildClients() {
  const clients = await makeClients();
  for (const [name, contents] of clients) await writeWhole(join(SRC, CLIENTS, name), contents);
  const others = await filesOf(CLIENTS, (name) => !clients.has(name));
  await Promise.all(others.map((path) => rm(path)));
}

/**
 * Scalar publishes its script as a whole only as a text inside its plugin for Fastify. The plugin does not run, so the
 * `overrides` of package.json replace what it depends on, which Node 20 installs with ten warnings, by a package that is
 * there anyway. 1.72.1 is the last release that has no such warning itself.
 */
async function buildScalar() {
  const [, text] = /^var standalone_default = (".*");$/m.exec(await readFile(SCALAR_SOURCE, 'utf8')) ?? [];
  if (text === undefined) throw new Error(`${SCALAR_SOURCE} has no script of Scalar`);
  await writeWhole(join(SRC, SCALAR), runInNewContext(text));
}

/** Writes a file and renames it, so that a process that starts meanwhile never loads half a file. */
async function writeWhole(path, contents) {
  const unfinished = `${path}.${process.pid}`;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(unfinished, contents);
  await rename(unfinished, path);
}

/** The files below a folder of src, as full paths. */
async function filesOf(folder, wanted) {
  const names = await readdir(join(SRC, folder), { recursive: true });
  return names.filter(wanted).map((name) => join(SRC, folder, name));
}

async function isOlder(target, sources) {
  const times = await Promise.all(sources.map(changedAt));
  const built = await changedAt(target);
  return built === 0 || times.some((time) => time > built);
}

/** The modification time in milliseconds since 1970. 0 when the file does not exist. */
async function changedAt(path) {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (error.code === 'ENOENT') return 0;
    throw error;
  }
}

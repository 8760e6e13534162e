import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../..');
const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.as.ts') && !path.startsWith('web/clients/')) // built
  .map((path) => ({ path, text: readFileSync(join(ROOT, 'src', path), 'utf8') }));

type Source = (typeof sources)[number];
const pathsOf = (isMeant: (source: Source) => boolean) => sources.filter(isMeant).map(({ path }) => path);

/** A library, and the only files that may import it. */
const OWNERS: [library: string, files: RegExp][] = [
  ['uWebSockets.js', /^engine\/uws\/library\.ts$/],
  ['mongodb', /^store\/mongo\//],
  ['@photostructure/sqlite', /^(base\/sqlite\.ts|store\/sqlite\/file\/worker\.mjs)$/],
  ['bson', /^store\/values\/bson\.ts$/],
  [
    'node:zlib',
    /^((pipeline\/(compress|crc32|pieces)|import\/(compressed|zstd)|pull\/http|load\/page-check)\.ts|editions\/delta\/parquet-thread\.mjs)$/,
  ],
  ['fast-json-stringify', /^rows\/serializers\.ts$/],
  ['negotiator', /^http\/negotiate\.ts$/],
  ['aws4', /^store\/bucket\/request\.ts$/],
  ['pino', /^telemetry\/log\.ts$/],
  ['cli-progress', /^terminal\/progress\.ts$/],
  ['ioredis', /^redis\/connect\.ts$/],
  ['@sinclair/typebox', /^base\/schema\.ts$/],
  ['ajv', /^input\/validate\.ts$/],
  ['prom-client', /^telemetry\/metrics\.ts$/],
  ['uuid', /^users\/user-routes\.ts$/],
  ['bullmq', /^queue\/bullmq\.ts$/],
  ['parquet-wasm', /^pipeline\/parquet-thread\.mjs$/],
  ['hyparquet-writer', /^editions\/delta\/parquet-thread\.mjs$/],
  ['rate-limiter-flexible', /^access\/limiter-redis\.ts$/],
  ['jose', /^access\/token-check\.ts$/],
  ...['api', 'exporter-trace-otlp-proto', 'resources', 'sdk-trace-base'].map((name): [string, RegExp] => [
    `@opentelemetry/${name}`,
    /^telemetry\/opentelemetry\.ts$/,
  ]),
  ['hdr-histogram-js', /^load\/histogram\.ts$/],
];

test('each library is imported in one place', () => {
  const threads = ['pipeline/parquet-thread.mjs', 'editions/delta/parquet-thread.mjs'];
  const programs = [
    ...sources,
    ...threads.map((path) => ({ path, text: readFileSync(join(ROOT, 'src', path), 'utf8') })),
  ];
  for (const [library, files] of OWNERS) {
    const pattern = new RegExp(
      `(from|import|require)\\s*\\(?\\s*'${library.replaceAll('.', '\\.')}(/[^']*)?'`,
    );
    const importers = programs.filter(({ text }) => pattern.test(text)).map(({ path }) => path);
    assert.ok(importers.length > 0, `${library} is not imported at all: drop the dependency`);
    assert.deepEqual(
      importers.filter((path) => !files.test(path)),
      [],
      library,
    );
  }
});

test('no command asks the MongoDB driver for raw replies, whose errors end the process', () => {
  const offenders = pathsOf(({ text }) => /\braw: true\b/.test(text));
  assert.deepEqual(offenders, []);
});

test('tests import fast-check where its seed is set', () => {
  const importers = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .filter((path) => /^import .* 'fast-check';$/m.test(readFileSync(join(ROOT, 'test', path), 'utf8')));
  assert.deepEqual(importers, ['support/fast-check.ts']);
});

test('only the command line and the settings use the environment and the exit of the process', () => {
  const offenders = pathsOf(
    ({ path, text }) =>
      /process\.(env|exit\b)/.test(text) &&
      !path.startsWith('web/page/') && // runs in browsers, and shows programs for Node
      !['process/commands.ts', 'server/main.ts', 'settings/config.ts', 'engine/uws/library.ts'].includes(
        path,
      ),
  );
  assert.deepEqual(offenders, []);
});

test('the program handles signals before it loads anything else', () => {
  const cli = sources.find(({ path }) => path === 'process/cli.ts')?.text ?? '';
  const imported = [...cli.matchAll(/^import .* from '(.*)';$/gm)].map(([, name]) => name);
  assert.deepEqual(imported, ['./signals.ts']);
  assert.ok(cli.indexOf('hearSignals()') < cli.indexOf("import('./commands.ts')"));
});

test('one module knows where the files of the program are', () => {
  const places = pathsOf(({ text }) =>
    text.replaceAll('createRequire(import.meta.url)', '').includes('import.meta'),
  );
  assert.deepEqual(places, ['asset.ts']);
});

test('the client and the load test import nothing of the server and use only its answers', () => {
  const offenders = pathsOf(
    ({ path, text }) =>
      /^(pull|load|types)\//.test(path) &&
      /from '\.\.\/(store|http|openapi|resources|users|server|settings|base\/(errors|problems))\b/.test(text),
  );
  assert.deepEqual(offenders, []);
});

/**
 * The folders and top-level files of src, in layers. Each imports only from those above it in this list, types
 * included, so no two import each other.
 */
const LAYERS: readonly (readonly string[])[] = [
  ['asset.ts'],
  ['base'],
  ['terminal', 'redis'],
  ['store'],
  ['rows'],
  ['pipeline'],
  ['engine'],
  ['input', 'queue'],
  ['access'],
  ['http'],
  ['openapi', 'telemetry'],
  ['resources'],
  ['users'],
  ['editions', 'exports', 'import'],
  ['pull'],
  ['load', 'typescript', 'web'],
  ['conform'],
  ['settings'],
  ['server'],
  ['process'],
];

const layerOf = (path: string) => LAYERS.findIndex((layer) => layer.includes(path.split('/')[0] ?? ''));

test('every folder belongs to a layer and imports only from layers below it', () => {
  const upwards = sources.flatMap(({ path, text }) => {
    const own = layerOf(path);
    assert.ok(own >= 0, `${path} belongs to no layer`);
    const imported = [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, name = '']) =>
      posix.join(posix.dirname(path), name),
    );
    return imported
      .filter((other) => other.split('/')[0] !== path.split('/')[0] && layerOf(other) >= own)
      .map((other) => `${path} -> ${other}`);
  });
  assert.deepEqual(upwards, []);
});

/** The files of src that each file imports, types included. */
const imports = new Map(
  sources.map(({ path, text }) => [
    path,
    [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, name = '']) =>
      posix.join(posix.dirname(path), name),
    ),
  ]),
);

/** The nodes of a graph that reach themselves, each with the way. */
function circlesOf(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (node: string, way: readonly string[]): void => {
    const seenAt = way.indexOf(node);
    if (seenAt >= 0) circles.push([...way.slice(seenAt), node].join(' -> '));
    if (seenAt >= 0 || done.has(node)) return;
    for (const next of graph.get(node) ?? []) visit(next, [...way, node]);
    done.add(node);
  };
  for (const node of graph.keys()) visit(node, []);
  return circles;
}

test('no files import each other in a circle', () => {
  assert.deepEqual(circlesOf(imports), []);
});

test('no folders beside each other import each other in a circle', () => {
  const folders = new Map<string, string[]>();
  for (const [path, imported] of imports) {
    const own = posix.dirname(path);
    for (const other of imported.map((name) => posix.dirname(name)))
      // A folder and one inside it are parts of one thing. The files beside the folders have layers of their own.
      if (
        own !== '.' &&
        other !== '.' &&
        !`${own}/`.startsWith(`${other}/`) &&
        !`${other}/`.startsWith(`${own}/`)
      )
        folders.set(own, [...(folders.get(own) ?? []), other]);
  }
  assert.deepEqual(circlesOf(folders), []);
});

test('only the composition root names the adapters of a port', () => {
  const offenders = pathsOf(
    ({ path, text }) =>
      !/^(server\/|process\/|store\/|queue\/|engine\/|access\/)/.test(path) &&
      /from '\.\.?\/(store\/(mongo|sqlite|folder|bucket\/(files|client|writer))|queue\/(local|bullmq)|engine\/(uws|node|engine))/.test(
        text,
      ),
  );
  assert.deepEqual(offenders, []);
});

test('the lane is used through one file, and knows nothing of the rest of the store in MongoDB', () => {
  const lane = 'store/mongo/lane/';
  const isOfLane = (path: string) => path.startsWith(lane);
  const crossing = [...imports].flatMap(([path, imported]) =>
    imported
      .filter((other) =>
        isOfLane(path)
          ? other.startsWith('store/mongo') && !isOfLane(other)
          : isOfLane(other) && other !== `${lane}lane.ts`,
      )
      .map((other) => `${path} -> ${other}`),
  );
  assert.deepEqual(crossing, []);
});

/** Names of types: nouns. A participle says what was done to a thing, and not what the thing is. */
const PARTICIPLE =
  /^((?!On[A-Z])\w*[a-z](?<!Fe|Ne)(ed|wn)|Found|Begun|Taken|Written|Made|Given|Seen|Held|Read)$/;

/** What has one name now, and the files that may still use the other word. */
const OLD_WORDS: readonly (readonly [word: RegExp, instead: string, except?: RegExp])[] = [
  [/\bPartRows\b|\bpartRows\b|\bpartOf\b|\bmakePart\b/, 'scope: the rows and fields that a key opens'],
  [/\b(itemsOfTable|importItems|ItemOf\w+|itemOf)\b/, 'row: of a file that is imported'],
  [/\b(SetShape|SetRecord|SetReads|SetIndexes|NamedSet|OneSet|severalSets)\b/, 'collection, or resource'],
  [/\b(RowSource|sourceOf|sourceFor)\b/, 'resource', /^process\/source-stacks\.ts$/],
];
/** Names of files that say too little where several folders have one. */
const OLD_FILES = /(^|\/)(events|routes|part-rows)\.ts$|^(resources\/query|users)\/part\.ts$/;

test('one thing has one name', () => {
  const types = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/^(?:export )?(?:abstract )?(?:interface|type|class) (\w+)/gm)]
      .map(([, name = '']) => name)
      .filter((name) => PARTICIPLE.test(name))
      .map((name) => `${path} has a type called ${name}`),
  );
  const words = OLD_WORDS.flatMap(([word, instead, except]) =>
    sources
      .filter(({ path, text }) => word.test(text) && !except?.test(path))
      .map(({ path, text }) => `${path} says ${word.exec(text)?.[0] ?? ''}: ${instead}`),
  );
  assert.deepEqual([...types, ...words, ...pathsOf(({ path }) => OLD_FILES.test(path))], []);
});

test('the top of the store has the port alone', () => {
  const PORT = [
    'batch',
    'bookmark',
    'change-feed',
    'collection',
    'files',
    'indexes',
    'objects',
    'plan',
    'records',
    'store',
  ];
  const top = pathsOf(({ path }) => /^store\/[\w-]+\.ts$/.test(path)).map((path) =>
    path.slice('store/'.length, -'.ts'.length),
  );
  assert.deepEqual(top.filter((name) => !name.endsWith('.d')).sort(), PORT);
});

const BUDGET_FILE = join(ROOT, 'test/budget.json');

/** The lines of TypeScript in each folder of src. `.` has the files beside the folders. The load test has no limit. */
function linesByFolder(): Map<string, number> {
  const lines = new Map<string, number>();
  for (const path of readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (!path.endsWith('.ts') || path.startsWith('load/')) continue;
    const folder = path.includes('/') ? (path.split('/')[0] ?? '') : '.';
    const count = readFileSync(join(ROOT, 'src', path), 'utf8').split('\n').length - 1;
    lines.set(folder, (lines.get(folder) ?? 0) + count);
  }
  return lines;
}

test('no folder of src has more lines than test/budget.json allows', () => {
  const budget = new Map(
    Object.entries(JSON.parse(readFileSync(BUDGET_FILE, 'utf8')) as Record<string, number>),
  );
  const lines = linesByFolder();
  if (process.env.UPDATE_BUDGET) {
    const lowered = [...budget].map(([folder, most]) => [folder, Math.min(most, lines.get(folder) ?? 0)]);
    const kept = lowered.filter(([, most]) => most !== 0);
    writeFileSync(BUDGET_FILE, `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`);
  }
  const above = [...lines].filter(([folder, count]) => count > (budget.get(folder) ?? 0));
  assert.deepEqual(
    above.map(([folder, count]) => `${folder} has ${count} lines, allowed are ${budget.get(folder) ?? 0}`),
    [],
  );
});

/** The names that files import from each file of src, also through one that exports all of it. */
function importedNames(): Map<string, Set<string>> {
  const named = new Map<string, Set<string>>();
  const passedOn: [by: string, from: string][] = [];
  for (const folder of ['src', 'test', 'bench', 'clients/javascript'])
    for (const path of readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })) {
      if (!path.endsWith('.ts') || path.endsWith('.d.ts')) continue;
      const text = readFileSync(join(ROOT, folder, path), 'utf8');
      const fileOf = (from = '') => posix.join(folder, posix.dirname(path), from);
      for (const [, from] of text.matchAll(/^export (?:type )?\* from '(\.[^']+)'/gm))
        passedOn.push([posix.join(folder, path), fileOf(from)]);
      for (const [, names = '', from] of text.matchAll(/\{([^{}]*)\}\s+from\s+'(\.[^']+)'/g)) {
        const all = named.get(fileOf(from)) ?? new Set();
        for (const name of names.split(','))
          all.add(
            name
              .trim()
              .replace(/^type /, '')
              .replace(/ as .*/, ''),
          );
        named.set(fileOf(from), all);
      }
    }
  for (const [by, from] of passedOn)
    named.set(from, new Set([...(named.get(from) ?? []), ...(named.get(by) ?? [])]));
  return named;
}

test('a type is exported only where another file names it', () => {
  const named = importedNames();
  // What pull.ts exports is the interface of the package.
  const needless = sources
    .filter(({ path }) => path !== 'pull/pull.ts')
    .flatMap(({ path, text }) =>
      [...text.matchAll(/^export (?:declare )?(?:type|interface) (\w+)/gm)]
        .map(([, name = '']) => name)
        .filter((name) => !named.get(`src/${path}`)?.has(name))
        .map((name) => `${path}: ${name}`),
    );
  assert.deepEqual(needless, []);
});

/** What tests of any folder use: values of a store, sums, rows that are made, files of editions, the composition. */
const TOOLS =
  /^(base\/(errors|problems|sqlite|edition\/[\w-]+)|server\/main|settings\/config|store\/\w+|store\/values\/\w+|store\/turns\/(\w+|read-turns)|store\/(mongo|sqlite)\/\w+-store|pipeline\/(chain|crc32|crc32-combine|compress)|import\/(command|import|synthetic)|process\/store-name|resources\/(item-collection|token\/cursor)|rows\/transcoder)\.ts$/;

test('a test stands in the folder of the source that it imports, where that is one folder', () => {
  const misplaced = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts') && !/^(contracts|faults|papers|bench)\//.test(path))
    .flatMap((path) => {
      const text = readFileSync(join(ROOT, 'test', path), 'utf8');
      const imported = [...text.matchAll(/^(?:import (?!type)|\} )[^;]*from '(\.[^']+)';$/gm)]
        .map(([, name = '']) => posix.join('test', posix.dirname(path), name))
        .filter((name) => name.startsWith('src/') && !TOOLS.test(name.slice('src/'.length)));
      const folders = new Set(imported.map((name) => posix.dirname(name.slice('src/'.length))));
      const [folder] = folders;
      return folders.size !== 1 || folder === posix.dirname(path) ? [] : [`${path} tests ${folder}`];
    });
  assert.deepEqual(misplaced, []);
});

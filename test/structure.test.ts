import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SETTINGS } from '../src/config.ts';
import { PROBLEMS } from '../src/errors.ts';
import { Metrics } from '../src/telemetry/metrics.ts';

const ROOT = join(import.meta.dirname, '..');
const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.as.ts'))
  .map((path) => ({ path, text: readFileSync(join(ROOT, 'src', path), 'utf8') }));

/** A library, and the only files that may import it. */
const OWNERS: [library: string, files: RegExp][] = [
  ['uWebSockets.js', /^http\/uws\/library\.ts$/],
  ['mongodb', /^store\/mongo(\.ts|\/)/],
  ['lmdb', /^store\/lmdb\.ts$/],
  ['bson', /^store\/bson\.ts$/],
  ['node:zlib', /^(stream\/(compress|crc32|pieces)|import\/open|pull\/decode)\.ts$/],
  ['fast-json-stringify', /^serialize\/serializers\.ts$/],
  ['negotiator', /^http\/negotiate\.ts$/],
  ['pino', /^telemetry\/log\.ts$/],
  ['env-schema', /^config\.ts$/],
  ['csv-parse', /^import\/csv\.ts$/],
  ['stream-json', /^import\/json\.ts$/],
  ['cli-progress', /^terminal\/bar\.ts$/],
  ['ioredis', /^redis\/connect\.ts$/],
  ['@sinclair/typebox', /^schema\.ts$/],
  ['ajv', /^http\/validate\.ts$/],
  ['prom-client', /^telemetry\/metrics\.ts$/],
  ['uuid', /^users\/id\.ts$/],
  ['bullmq', /^queue\/bullmq\.ts$/],
  ['p-queue', /^queue\/local\.ts$/],
  ['rate-limiter-flexible', /^limiter\/redis\.ts$/],
];

test('each library is imported in one place', () => {
  for (const [library, files] of OWNERS) {
    const pattern = new RegExp(
      `(from|import|require)\\s*\\(?\\s*'${library.replaceAll('.', '\\.')}(/[^']*)?'`,
    );
    const importers = sources.filter(({ text }) => pattern.test(text)).map(({ path }) => path);
    assert.ok(importers.length > 0, `${library} is not imported at all: drop the dependency`);
    assert.deepEqual(
      importers.filter((path) => !files.test(path)),
      [],
      library,
    );
  }
});

test('the environment and the exit of the process belong to the command line and the settings', () => {
  const offenders = sources.filter(
    ({ path, text }) =>
      /process\.(env|exit\b)/.test(text) &&
      !['commands.ts', 'main.ts', 'config.ts', 'http/uws/library.ts'].includes(path),
  );
  assert.deepEqual(
    offenders.map(({ path }) => path),
    [],
  );
});

test('the program hears signals before it loads anything else', () => {
  const cli = sources.find(({ path }) => path === 'cli.ts')?.text ?? '';
  const imported = [...cli.matchAll(/^import .* from '(.*)';$/gm)].map(([, name]) => name);
  assert.deepEqual(imported, ['./signals.ts']);
  assert.ok(cli.indexOf('hearSignals()') < cli.indexOf("import('./commands.ts')"));
});

test('the client knows the server by its answers only', () => {
  const offenders = sources.filter(
    ({ path, text }) =>
      path.startsWith('pull/') &&
      /from '\.\.\/(store|http|items|users|pages|main|app|config|errors)\b/.test(text),
  );
  assert.deepEqual(
    offenders.map(({ path }) => path),
    [],
  );
});

test('resources import ports, never adapters', () => {
  const offenders = sources.filter(
    ({ path, text }) =>
      /^(items|users|exports)\//.test(path) &&
      /from '\.\.\/(store\/(mongo|lmdb|directory)|queue\/(local|bullmq)|http\/(uws|node|engine))/.test(text),
  );
  assert.deepEqual(
    offenders.map(({ path }) => path),
    [],
  );
});

/** The first column of the table under a heading of the README, without code marks. */
function readmeColumn(heading: string): string[] {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const section = readme.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  return [...section.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name ?? '');
}

test("the README's table of settings is the code's", () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  assert.deepEqual(readmeColumn('Settings'), Object.keys(SETTINGS.properties));
  for (const [name, { default: fallback }] of Object.entries(SETTINGS.properties)) {
    const shown = fallback === undefined ? '' : `\`${String(fallback)}\``;
    assert.ok(
      readme.includes(`| \`${name}\` | ${shown} |`.replace('|  |', '| |')),
      `${name} with its default ${shown}`,
    );
  }
});

test("the README's table of problem codes is the code's", () => {
  assert.deepEqual(readmeColumn('Errors'), Object.keys(PROBLEMS));
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  for (const [code, { status }] of Object.entries(PROBLEMS))
    assert.ok(readme.includes(`| \`${code}\` | ${status} |`), code);
});

test("the README's table of metrics is the code's", () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const shown = [...readme.matchAll(/^\| `(sluice_\w+)` \| (.*) \|$/gm)].map(([, name, help]) => ({
    name,
    help,
  }));
  const counted = new Metrics({
    openStreams: () => 0,
    runningExports: () => 0,
    exports: () => ({}),
    overloaded: () => false,
  })
    .list()
    .filter(({ name }) => name.startsWith('sluice_'));
  assert.deepEqual(
    shown,
    counted.map(({ name, help }) => ({ name, help })),
  );
});

test('the Grafana dashboard asks for metrics that there are, and for all of ours', () => {
  const dashboard = readFileSync(join(ROOT, 'docs/ops/grafana.json'), 'utf8');
  const { panels } = JSON.parse(dashboard) as { panels: { targets: { expr: string }[] }[] };
  const text = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join('\n');
  const asked = new Set(
    text.match(/\b(sluice|process|nodejs)_\w+/g)?.map((name) => name.replace(/_bucket$/, '')),
  );
  const known = new Metrics({
    openStreams: () => 0,
    runningExports: () => 0,
    exports: () => ({}),
    overloaded: () => false,
  })
    .list()
    .map(({ name }) => name);
  assert.deepEqual(
    [...asked].filter((name) => !known.includes(name)),
    [],
    'there are no such metrics',
  );
  assert.deepEqual(
    known.filter((name) => name.startsWith('sluice_') && !asked.has(name)),
    [],
    'the dashboard does not show them',
  );
});

test("each sentence of the README's promises about streams names a test that is there", () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const section = readme.split('### What a stream promises')[1]?.split('\n### ')[0] ?? '';
  const promises = section.split('\n- ').slice(1);
  assert.ok(promises.length > 10);
  const files = readdirSync(join(ROOT, 'test'));
  for (const promise of promises) {
    const named = [...promise.replace(/\s+/g, ' ').matchAll(/[(;] ?`([\w.-]+)`: ([^;)]+)/g)];
    assert.ok(named.length > 0, promise);
    for (const [, file = '', words = ''] of named) {
      const found = files.find((name) => [`${file}.test.ts`, `${file}.contract.ts`].includes(name)) ?? file;
      assert.ok(readFileSync(join(ROOT, 'test', found), 'utf8').includes(words), `${found}: ${words}`);
    }
  }
});

/** The text of a test file with that of the contract suites it runs. */
function testText(name: string): string {
  const names = new Set([name]);
  const texts: string[] = [];
  for (const each of names) {
    const text = readFileSync(join(ROOT, 'test', each), 'utf8');
    texts.push(text);
    for (const [, contract = ''] of text.matchAll(/from '\.\/([\w.-]+\.contract\.ts)'/g)) names.add(contract);
  }
  return texts.join('\n');
}

test("each row of the README's table of attacks has a command that runs a test of this name", () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const section = readme.split('\n## How hard it is to kill\n')[1]?.split('\n## ')[0] ?? '';
  const rows = [...section.matchAll(/^\| ([RS]\d+ .*) \|$/gm)].map(([, row = '']) => row.split(' |'));
  assert.deepEqual(
    rows.map(([row = '']) => row.split(' ')[0]),
    [
      ...Array.from({ length: 15 }, (_, n) => `R${n + 1}`),
      ...Array.from({ length: 13 }, (_, n) => `S${n + 1}`),
    ],
  );
  const files = readdirSync(join(ROOT, 'test')).filter((name) => name.endsWith('.test.ts'));
  for (const [row = '', , , again = ''] of rows) {
    const named = [...again.matchAll(/`npm (?:test|run test:long) -- ([\w.-]+)`: ([^;]+)/g)];
    assert.ok(named.length > 0, row);
    for (const [, word = '', words = ''] of named) {
      const run = files.filter((name) => name.includes(word)).map(testText);
      assert.ok(
        run.some((text) => text.includes(words.trim())),
        `${row}: ${word}: ${words}`,
      );
    }
  }
});

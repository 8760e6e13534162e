import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

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

import assert from 'node:assert/strict';
import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { TAKEN_OVER } from '../../src/server/read-again.ts';
import { faultOfValue, formOf } from '../../src/settings/config.ts';
import { SETTINGS } from '../../src/settings/settings.ts';
import { PROBLEMS } from '../../src/base/problems.ts';
import { ITEM_FORM } from '../../src/resources/items.ts';
import { streamParameters } from '../../src/resources/stream/parameters.ts';
import { pageParameters } from '../../src/resources/page/parameters.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { unitOf } from '../support/faults/ops.ts';
import {
  DESIGNS,
  DOCUMENTS,
  documentText,
  firstColumn,
  ROOT,
  section,
  tableRows,
  TEST_FILES,
  testText,
} from '../support/papers/documents.ts';

test('the README has at most 300 lines', () => {
  assert.ok(documentText('README.md').split('\n').length <= 300);
});

test('the README names the command that runs the tests, and CI ends with it', () => {
  const [, command = ''] = /```console\n(.*npm test)\n```/.exec(section('README.md', 'Start')) ?? [];
  assert.equal(command, 'npm ci && npm test');
  assert.equal(documentText('.ci/run').trimEnd().split('\n').at(-1), command);
});

test('image and unit have the C library give memory back, as the documents say', () => {
  const unit = unitOf(documentText('docs/ops/sluice@.service')).Environment ?? [];
  const [set] = unit.filter((line) => line.includes('MALLOC_'));
  const [, image] = /^ENV (MALLOC_.*)$/m.exec(documentText('Dockerfile')) ?? [];
  assert.equal(image, set);
  const variables = set?.split(' ') ?? [];
  assert.equal(variables.length, 3);
  const text = section('docs/operations.md', 'Overload');
  for (const one of variables) assert.ok(text.includes(`\`${one}\``), one);
});

test('the table of settings equals the code', () => {
  const rows = tableRows(section('docs/operations.md', 'Settings'));
  assert.deepEqual(
    rows.map(([name, form, fallback, , meaning]) => [name, form, fallback, meaning]),
    Object.entries(SETTINGS.properties).map(([name, setting]) => [
      `\`${name}\``,
      formOf(setting),
      setting.default === undefined ? '' : `\`${String(setting.default)}\``,
      setting.description,
    ]),
  );
  const wrong = rows.filter(([name = '', , , example = '']) => {
    const value = /^`(.+)`$/.exec(example)?.[1];
    return value === undefined || faultOfValue(name.replaceAll('`', ''), value) !== null;
  });
  assert.deepEqual(wrong, [], 'each setting has an example that a server accepts');
});

test('the sentence about SIGHUP names the settings that a running server takes over', () => {
  const [, sentence = ''] =
    /SIGHUP takes over ([^.]+)\./.exec(section('docs/operations.md', 'Settings')) ?? [];
  const named = [...sentence.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name);
  assert.deepEqual(new Set(named), TAKEN_OVER);
});

test('the table of problem codes equals the code', () => {
  assert.deepEqual(
    tableRows(section('docs/api.md', 'Errors')),
    Object.entries(PROBLEMS).map(([code, { status, title }]) => [`\`${code}\``, String(status), title]),
  );
});

test('the tables of parameters equal the code', () => {
  const plan = ITEM_FORM.parameters.map(({ name }) => name);
  const pages = pageParameters({ maxLimit: 1000, maxOffset: 1000 }, ITEM_FORM.parameters, true);
  const shownOfPages = tableRows(section('docs/api.md', 'Pages').split('\n### ')[0] ?? '').flatMap(
    ([first = '']) => [...first.matchAll(/`(\w+)`/g)].map(([, name = '']) => name),
  );
  assert.deepEqual(shownOfPages.sort(), pages.map(({ name }) => name).sort());
  assert.deepEqual(
    firstColumn('docs/api.md', 'Stream parameters').sort(),
    streamParameters(ITEM_FORM.parameters)
      .map(({ name }) => name)
      .filter((name) => !plan.includes(name))
      .sort(),
  );
});

async function metrics() {
  const all = new Metrics();
  all.watch({
    openStreams: () => 0,
    runningExports: () => 0,
    editions: () => new Map(),
    exports: () => ({}),
    overloaded: () => false,
    transcodedMs: () => 0,
    settingsFaults: () => ({}),
  });
  return (await all.values()) as { readonly name: string; readonly help: string }[];
}

test('the table of metrics equals the code', async () => {
  const own = (await metrics()).filter(({ name }) => name.startsWith('sluice_'));
  assert.deepEqual(
    tableRows(section('docs/operations.md', 'Metrics')),
    own.map(({ name, help }) => [`\`${name}\``, help]),
  );
});

test('the Grafana dashboard queries all of our metrics and no others', async () => {
  const { panels } = JSON.parse(documentText('docs/ops/grafana.json')) as {
    panels: { targets: { expr: string }[] }[];
  };
  const text = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join('\n');
  const asked = new Set(
    text.match(/\b(sluice|process|nodejs)_\w+/g)?.map((name) => name.replace(/_bucket$/, '')),
  );
  const known = (await metrics()).map(({ name }) => name);
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

test('each promise about streams names an existing test', () => {
  const promises = section('docs/streams.md', 'What a stream promises').split('\n- ').slice(1);
  assert.ok(promises.length > 20);
  const missing: string[] = [];
  for (const promise of promises) {
    const named = [...promise.replace(/\s+/g, ' ').matchAll(/[(;] ?`([\w./-]+)`: ([^;)]+)/g)];
    assert.ok(named.length > 0, promise);
    for (const [, file = '', words = ''] of named) {
      if (!testText(file).includes(words)) missing.push(`${file}: ${words}`);
    }
  }
  assert.deepEqual(missing, []);
});

/** The text of a test file, by its path from test/, and of the contract suites that it runs. */
function textOfRun(path: string): string {
  const paths = new Set([path]);
  const texts: string[] = [];
  for (const each of paths) {
    const text = readFileSync(join(ROOT, 'test', each), 'utf8');
    texts.push(text);
    for (const [, contract = ''] of text.matchAll(/from '(\.[\w./-]+\.contract\.ts)'/g))
      paths.add(join(dirname(each), contract));
  }
  return texts.join('\n');
}

test('each row of reliability.md has a command that runs an existing test', () => {
  const rows = tableRows(documentText('docs/reliability.md'));
  assert.ok(rows.length >= 28, `${rows.length} rows`);
  const files = TEST_FILES.filter((path) => path.endsWith('.test.ts'));
  for (const [done = '', , seen = '', command = '', runs = '', ...more] of rows) {
    assert.ok(seen !== '' && /^(CI|long)/.test(runs) && more.length === 0, `${done}: five columns`);
    const named = [...command.matchAll(/`npm (?:test|run test:long) -- ([\w./-]+)`: ([^;]+)/g)];
    assert.ok(named.length > 0, done);
    for (const [, word = '', words = ''] of named) {
      const run = files.filter((path) => path.includes(word)).map(textOfRun);
      assert.ok(
        run.some((text) => text.includes(words.trim())),
        `${done}: ${word}: ${words}`,
      );
    }
  }
});

/** GitHub's name of a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

test('each command of npm that a document or a source file names is a script', () => {
  const { scripts } = JSON.parse(documentText('package.json')) as { scripts: Record<string, string> };
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
  const files = [
    ...DOCUMENTS,
    ...sources.filter((path) => path.endsWith('.ts')).map((path) => `src/${path}`),
  ];
  const missing = files.flatMap((path) =>
    [...documentText(path).matchAll(/\bnpm run (?:--?[\w-]+ )*([a-z:]+)/g)]
      .filter(([, name = '']) => scripts[name] === undefined)
      .map(([command]) => `${path}: ${command}`),
  );
  assert.deepEqual(missing, []);
});

test('each word behind npm test in a document, and in the table of changes, is in the path of a test', () => {
  const commands = DOCUMENTS.flatMap((path) =>
    [...documentText(path).matchAll(/\bnpm (?:test|run test:\w+) -- ([\w./ -]+)/g)].flatMap(
      ([, words = '']) => words.split(' '),
    ),
  );
  const inTable = tableRows(section('docs/ARCHITECTURE.md', 'Where a change goes')).flatMap(
    ([, , tests = '']) => [...tests.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word),
  );
  assert.ok(commands.length > 40 && inTable.length > 30, `${commands.length} and ${inTable.length} words`);
  const missing = [...commands, ...inTable].filter(
    (word) => /^[a-z]/.test(word) && !TEST_FILES.some((path) => path.includes(word)),
  );
  assert.deepEqual(missing, []);
});

test('CONTRIBUTING.md lists the programs of CI, which run as written', () => {
  const programs = readdirSync(join(ROOT, '.ci')).filter((name) =>
    documentText(`.ci/${name}`).startsWith('#!/usr/bin/env bash'),
  );
  const named = documentText('docs/CONTRIBUTING.md').matchAll(/^\| `\.ci\/(\w[\w-]*)`/gm);
  assert.deepEqual([...named].map(([, name]) => name).sort(), programs);
  for (const name of programs) accessSync(join(ROOT, '.ci', name), constants.X_OK);
});

test('each line of a terminal in the documents runs in a checkout: none begins with sluice', () => {
  const lines = DOCUMENTS.flatMap((path) =>
    [...documentText(path).matchAll(/```(?:console|shell-session|sh)\n([^]*?)```/g)]
      .flatMap(([, block = '']) => block.split('\n'))
      .filter((line) => /^(?:\$ )?sluice\b/.test(line)),
  );
  assert.deepEqual(lines, []);
});

test('each link of the documents leads to an existing file and heading', () => {
  const broken: string[] = [];
  for (const path of DOCUMENTS) {
    const prose = documentText(path).replace(/```[^]*?```|`[^`\n]*`/g, '');
    for (const [, link = ''] of prose.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
      const [file = '', anchor] = link.split('#');
      const target = file === '' ? path : join(dirname(path), file);
      const found =
        existsSync(join(ROOT, target)) &&
        (anchor === undefined ||
          [...documentText(target).matchAll(/^#+ (.+)$/gm)].some(
            ([, heading = '']) => anchorOf(heading) === anchor,
          ));
      if (!found) broken.push(`${path}: ${link}`);
    }
  }
  assert.deepEqual(broken, []);
});

test('the folders in the architecture document are those of the source', () => {
  const described = firstColumn('docs/ARCHITECTURE.md', 'Folders').filter((name) => /^\w+\/$/.test(name));
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
  const folders = sources
    .filter((path) => path.endsWith('.ts') && path.includes('/'))
    .map((path) => `${path.split('/')[0]}/`);
  assert.deepEqual(described.sort(), [...new Set(folders)].sort());
});

/** Where a file lies that a document names, from the root. A design names those of its folder as an import there would. */
function fileNamed(document: string, name: string): string {
  return /^(?:src|test|bench|docs)\//.test(name) ? name : join(dirname(document), name);
}

test('each source file that a document names exists', () => {
  const missing = DOCUMENTS.flatMap((path) =>
    [...documentText(path).matchAll(/`((?:src|test|bench)\/[\w./-]+\.\w+)`/g)]
      .filter(([, file = '']) => !existsSync(join(ROOT, file)))
      .map(([, file = '']) => `${path}: ${file}`),
  );
  assert.deepEqual(missing, []);
});

test('each file and folder that a design names exists', () => {
  const named = DESIGNS.flatMap((path) =>
    [...documentText(path).matchAll(/`([\w.-]*(?:\/[\w.-]+)*(?:\.(?:ts|mjs|md|json)|\/))`/g)].map(
      ([, name = '']) => ({ path, name }),
    ),
  );
  for (const design of DESIGNS) assert.ok(named.filter(({ path }) => path === design).length > 5, design);
  const missing = named.filter(({ path, name }) => !existsSync(join(ROOT, fileNamed(path, name))));
  assert.deepEqual(missing, []);
});

test('a design has at most 80 lines, and ARCHITECTURE.md leads to each', () => {
  const long = DESIGNS.filter((path) => documentText(path).trimEnd().split('\n').length > 80);
  assert.deepEqual(long, []);
  const led = [...documentText('docs/ARCHITECTURE.md').matchAll(/\]\(\.\.\/([\w/]+\/DESIGN\.md)\)/g)];
  assert.deepEqual(led.map(([, path]) => path).sort(), DESIGNS.toSorted());
});

test('each name that a document places in a source file is there', () => {
  const named = DOCUMENTS.flatMap((path) =>
    [...documentText(path).matchAll(/`(#?\w+)`\s+in\s+`([\w/.-]+\.ts)`/g)].map(
      ([text, name = '', file = '']) => ({ text, name, file: fileNamed(path, file) }),
    ),
  ).filter(({ file }) => /^(?:src|test|bench)\//.test(file));
  assert.ok(named.length > 12, `${named.length} names`);
  const missing = named.filter(({ name, file }) => !new RegExp(`${name}\\b`).test(documentText(file)));
  assert.deepEqual(
    missing.map(({ text }) => text),
    [],
  );
});

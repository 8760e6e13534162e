import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { withFigures, withHeadlines } from '../../bench/report/document.ts';
import { plots } from '../../bench/report/plots.ts';
import { published, together } from '../../bench/report/publish.ts';
import { tables } from '../../bench/report/tables.ts';
import { type Results, type Round, type ScenarioResult } from '../../bench/results.ts';
import { compare } from '../../bench/revision.ts';
import { documentText } from '../support/papers/documents.ts';

const ROOT = join(import.meta.dirname, '../..');

function round(perSecond: number, more: Partial<Round> = {}): Round {
  const usage = { server: 1, client: 0.2, mongod: 0.5, rssPeak: 80e6 };
  return { seconds: 1, count: perSecond, usage, ...more };
}

function scenario(
  name: string,
  group: string,
  series: Readonly<Record<string, readonly Round[]>>,
): ScenarioResult {
  return {
    name,
    group,
    kind: group === 'streams' ? 'stream' : 'requests',
    shows: 'a made-up run',
    x: 10,
    store: 'mongodb',
    rows: 1000,
    series: Object.entries(series).map(([candidate, rounds]) => ({ candidate, rounds })),
  };
}

function run(...scenarios: ScenarioResult[]): Results {
  const versions = { node: '20.0.0' };
  return {
    machine: 'two cores',
    versions,
    commit: 'abc',
    command: 'npm run bench',
    date: '2026-01-02',
    minutes: 1,
    scenarios,
  };
}

const latency = { p50: 1, p90: 2, p99: 3.5, max: 9 };
const made = run(
  scenario('stream-id', 'streams', {
    sluice: [round(900_000), round(1_000_000), round(1_200_000)],
    'bare chain': [round(1_250_000)],
    fastify: [round(100_000)],
  }),
  scenario('connections-10', 'connections', {
    sluice: [round(3000, { latency })],
    fastify: [round(900, { latency })],
  }),
  scenario('cursor-0', 'depth', { sluice: [round(1000, { latency })] }),
  scenario('slow-reader', 'memory', {
    sluice: [
      round(1, {
        samples: [
          [0, 50e6],
          [1, 60e6],
        ],
      }),
    ],
  }),
  scenario('size-10', 'sizes', { sluice: [round(5)] }),
);

test('the documents show the figures of the published results', () => {
  const benchmarks = documentText('docs/benchmarks.md');
  const readme = documentText('README.md');
  const results = published();
  assert.equal(benchmarks, withFigures(benchmarks, results));
  assert.equal(readme, withHeadlines(readme, results));
  const drawn = readdirSync(join(ROOT, 'bench/results')).filter((name) => name.endsWith('.svg'));
  const wanted = results ? plots(results) : [];
  assert.deepEqual(drawn.sort(), wanted.map(({ file }) => file).sort());
  for (const { file, svg } of wanted)
    assert.equal(readFileSync(join(ROOT, 'bench/results', file), 'utf8'), svg);
});

test('figures are written between their marks, and writing them again changes nothing', () => {
  for (const [name, put] of [
    ['docs/benchmarks.md', withFigures],
    ['README.md', withHeadlines],
  ] as const) {
    const text = documentText(name);
    const once = put(text, made);
    assert.match(once, /Measured on 2026-01-02: two cores; commit abc/);
    assert.match(once, /against Fastify .*\| >= 15x \| 10\.00x \| no \|/);
    assert.equal(put(once, made), once);
    assert.equal(put(once, published()), text);
    assert.throws(() => put('# no marks', made), /marks/);
  }
});

test('a table shows medians, the spread, the ratio to sluice, and a mark where the server was not busy', () => {
  const text = tables(made);
  assert.match(text, /\| sluice \| 1,000,000 \| 900,000 - 1,200,000 \| {2}\|/);
  assert.match(text, /\| \*bare chain\* \| 1,250,000 \| .* \| 0\.80x \|/);
  assert.match(text, /\| fastify \| 100,000 \| .* \| 10\.00x \|/);
  assert.match(
    text,
    /stream in id order, CPU time of the server for a million rows \| <= 0\.9 s \| 1\.00 s \| no \|/,
  );
  assert.doesNotMatch(text, /†|NaN|undefined/);
  const idle = { usage: { server: 0.5, client: 1, mongod: 1, rssPeak: 1 } };
  assert.match(
    tables(run(scenario('page-price', 'pages', { sluice: [round(10, idle)] }))),
    /0\.50, 1\.00, 1\.00 †/,
  );
});

test('a commit counts as slower only beyond the noise', () => {
  const against = (own: readonly number[], other: readonly number[]) => {
    const series = {
      sluice: own.map((each) => round(each)),
      'sluice at main': other.map((each) => round(each)),
    };
    return compare([scenario('stream-id', 'streams', series)], 'main')[0]?.is;
  };
  assert.equal(against([80, 81, 82, 83, 84], [100, 101, 102, 103, 104]), 'slower');
  assert.equal(against([100, 101, 102, 103, 104], [80, 81, 82, 83, 84]), 'faster');
  assert.equal(against([97, 98, 98, 98, 99], [100, 101, 101, 101, 102]), 'the same'); // under 5 %
  assert.equal(against([60, 80, 90, 110, 120], [70, 95, 100, 105, 130]), 'the same'); // the rounds overlap
  assert.equal(against([10, 100, 101, 102, 103], [100, 101, 102, 103, 104]), 'the same'); // one disturbed round
});

test('the CPU time of a commit is compared by the round that took least', () => {
  const taking = (...seconds: readonly number[]) =>
    seconds.map((server) => ({ ...round(100), usage: { server, client: 0, mongod: 0, rssPeak: 0 } }));
  const one = scenario('stream-id', 'streams', {
    sluice: taking(4, 2, 9),
    'sluice at main': taking(3, 8, 5),
  });
  assert.equal(compare([one], 'main')[0]?.cpu, 1.5);
});

test('a run of chosen scenarios takes the place of those figures alone, and the page says at which commit', () => {
  const first = scenario('first', 'streams', { sluice: [round(1)] });
  const second = scenario('second', 'streams', { sluice: [round(2)] });
  const later = (commit: string, ...scenarios: ScenarioResult[]) => ({
    ...run(...scenarios),
    commit,
    command: `npm run bench -- --scenario ${scenarios.map(({ name }) => name).join()}`,
  });
  const changed = { ...second, rows: 1000, series: [{ candidate: 'sluice', rounds: [round(3)] }] };
  const other = scenario('third', 'streams', { sluice: [round(4)] });
  const both = together(run(first, second), later('def', changed, other), true);
  assert.deepEqual(both.scenarios, [first, changed, other]);
  assert.equal(both.commit, 'abc');
  const marks = '<!-- bench: written by npm run bench -- --publish -->\n<!-- end of bench -->';
  assert.match(
    withFigures(marks, both),
    /again on 2026-01-02 at commit def: `second on mongodb`, `third on mongodb`; `npm run bench/,
  );
  const { again } = together(both, later('ghi', changed), true);
  assert.deepEqual(
    again?.map(({ commit, names }) => [commit, names]),
    [
      ['def', ['third on mongodb']],
      ['ghi', ['second on mongodb']],
    ],
  );
  assert.deepEqual(together(both, later('ghi', changed), false).scenarios, [changed]);
  assert.deepEqual(together({ ...both, machine: 'another' }, later('ghi', changed), true).scenarios, [
    changed,
  ]);
});

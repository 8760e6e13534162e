import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { faultyServer, type FaultsOnPurpose } from './support/faulty-server.ts';
import { loading } from './support/loading.ts';

const SHORT = ['--for', '1s', '--ramp', '0s'];

const WRONG: readonly [what: string, faults: FaultsOnPurpose, words: readonly string[], reason: RegExp][] = [
  [
    'a changed row',
    { sent: (rows) => rows.map((row) => row.replace('id-7', 'id-x')) },
    ['--pullers', '1'],
    /crc32 is \d+, not \d+/,
  ],
  ['a lost row', { sent: (rows) => rows.slice(1) }, ['--pullers', '1'], /rows is 19, not 20/],
  [
    'a page with a row twice',
    { page: () => [{ id: 'a' }, { id: 'b' }, { id: 'a' }] },
    ['--pages', '20/s', '--query', '/items'],
    /the same row twice/,
  ],
  [
    'a page without data',
    { page: () => 'rows' as unknown as object[] },
    ['--pages', '20/s', '--query', '/items'],
    /a page has no data/,
  ],
];

for (const [what, faults, words, reason] of WRONG)
  test(`${what} makes the answer wrong, and the exit code 2`, async (t) => {
    const { url } = await faultyServer(t, faults);
    const { code, result } = await loading([url, ...words, ...SHORT]);
    assert.equal(code, 2);
    assert.ok((result?.phases[0]?.counts.wrong ?? 0) > 0);
    assert.match(result?.verdict.reasons.join() ?? '', reason);
    if (result?.pullers[0]) assert.equal(result.pullers[0].proof, 'wrong');
  });

test('a cut stream counts as cut, and not as wrong', async (t) => {
  const { url } = await faultyServer(t, { cut: true });
  const { code, result } = await loading([url, '--pullers', '1', ...SHORT]);
  assert.equal(code, 1);
  assert.ok((result?.phases[0]?.counts.cut ?? 0) > 0);
  assert.equal(result?.phases[0]?.counts.wrong, 0);
});

test('a stall shows in the latencies of all that was due meanwhile, and where it was', async (t) => {
  const stall: { until: Promise<unknown> | null } = { until: null };
  const { url } = await faultyServer(t, {
    before: () => {
      stall.until ??= sleep(2000);
      return stall.until;
    },
  });
  const rate = 50;
  const words = [
    '--pages',
    `${rate}/s`,
    '--query',
    '/items',
    '--connections',
    '4',
    '--for',
    '4s',
    '--ramp',
    '0s',
  ];
  const { code, result } = await loading([url, ...words]);
  assert.equal(code, 0);
  assert.ok(result);
  const { pages } = result.latencies;
  const above = (ms: number) => {
    const over = pages.ticks.map((tick, i) => (tick > ms * 10 ? (pages.counts[i] ?? 0) : 0));
    return over.reduce((sum, count) => sum + count, 0);
  };
  assert.ok((pages.max ?? 0) >= 1950, `max ${pages.max}`);
  assert.ok(above(1000) >= rate * 0.8, `${above(1000)} above 1 s`); // half of those due in 2 s
  assert.ok(above(1) >= rate * 1.8);
  assert.equal(result.series[0]?.goodPages, 0);
  assert.ok(result.series[0].waiting >= rate * 0.8);
  assert.ok((result.series[2]?.pages.max ?? 0) >= 1900);
  assert.ok((result.slowest[0]?.latency ?? 0) >= 1950);
});

test('a server that leaves ends the run with what was measured', async (t) => {
  const { url, leave } = await faultyServer(t);
  const left = sleep(800).then(leave);
  const words = [url, '--pages', '100/s', '--query', '/items', '--for', '60s', '--ramp', '0s'];
  const { code, result } = await loading(words);
  await left;
  assert.equal(code, 1);
  assert.ok(result?.interrupted && result.seconds < 40);
  assert.match(result.verdict.reasons.join(), /could not be reached for 10 s.*ECONNREFUSED/);
  assert.ok((result.series[0]?.ok ?? 0) > 20);
});

test('a user who interrupts gets what was measured', async (t) => {
  const { url } = await faultyServer(t);
  const stop = new AbortController();
  const stopped = sleep(1500).then(() => stop.abort());
  const words = [url, '--pages', '50/s', '--query', '/items', '--for', '60s', '--ramp', '0s'];
  const { code, result } = await loading(words, stop.signal);
  await stopped;
  assert.equal(code, 0);
  assert.ok(result?.interrupted && result.phases.length === 1);
});

test('a search prints the last rate that held and the first that broke', async (t) => {
  const { url } = await faultyServer(t);
  const words = ['--find', 'p50<0.2ms', '--pages', '8/s', '--query', '/items', '--for', '1s'];
  const { result } = await loading([url, ...words]);
  assert.ok(result);
  const { found, phases } = result;
  assert.equal(found?.held, null);
  assert.equal(found.broke, 1);
  assert.deepEqual(
    phases.map(({ kind, asked, held }) => [kind, asked, held]),
    [8, 4, 2, 1].map((asked) => ['step', asked, false]),
  );
});

test('a rejected key ends the test before it begins', async (t) => {
  const { url } = await faultyServer(t, { status: 401 });
  const { code, result, said } = await loading([url, ...SHORT]);
  assert.deepEqual([code, result], [1, null]);
  assert.match(said, /answered 401: The key is unknown\.; give a key with --key-file FILE/);
});

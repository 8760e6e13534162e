import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { Faults } from '../../src/load/faults.ts';
import { Requests } from '../../src/load/http/requests.ts';
import { Pages } from '../../src/load/pages.ts';
import { Mix } from '../../src/load/queries.ts';
import { Recorder } from '../../src/load/recorder.ts';
import { steadySchedule } from '../../src/load/schedule.ts';
import { faultyServer, type FaultsOnPurpose } from '../support/load/faulty-server.ts';
import { loading } from '../support/load/loading.ts';

const SHORT = ['--for', '1s', '--ramp', '0s'];
/** Pages per second. */
const RATE = 50;
/** Pages that are answered before something happens. */
const MOST = 20;

async function until(isDone: () => boolean): Promise<void> {
  while (!isDone()) await turn();
}

const WRONG: readonly [what: string, faults: FaultsOnPurpose, words: readonly string[], reason: RegExp][] = [
  [
    'a changed row',
    { sent: (rows) => rows.map((row) => row.replace('id-7', 'id-x')) },
    ['--pullers', '1'],
    /crc32 is \d+, not \d+/,
  ],
  [
    'another content type',
    { type: 'text/plain' },
    ['--pullers', '1'],
    /answered with text\/plain, not with application\/x-ndjson/,
  ],
  ['a lost row', { sent: (rows) => rows.slice(1) }, ['--pullers', '1'], /rows is 19, not 20/],
  [
    'a page with a row twice',
    { page: () => [{ id: 'a' }, { id: 'b' }, { id: 'a' }] },
    ['--pages', '20/s', '--query', '/items'],
    /the same row twice/,
  ],
  [
    'a page out of order',
    { page: () => [1, null, 9, 10, 2].map((n, id) => ({ id, deep: { n } })) },
    ['--pages', '20/s', '--query', '/items?sort=deep.n_asc'],
    /not in the order that was asked for/,
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
  let now = 0;
  let goOn = (): void => undefined;
  const stalled = new Promise<void>((resolve) => (goOn = resolve));
  const { url } = await faultyServer(t, { before: () => stalled });
  const client = { cpu: 0, loopDelay: 0, memory: 0 };
  const recorder: Recorder = new Recorder(
    () => now,
    () => ({ asked: RATE, waiting: pages.waiting, streams: 0, followers: 0, client }),
  );
  const pages = new Pages({
    requests: new Requests(new URL(url), null),
    connections: 4,
    recorder,
    faults: new Faults(),
    mix: new Mix([{ path: '/items', walks: false, weight: 1 }], () => 0),
    random: () => 1,
    now: () => now,
    codings: ['identity'],
    checkMs: 0,
  });
  t.after(() => pages.close());
  pages.start(steadySchedule(RATE));
  const { counts } = recorder.whole;
  for (const second of [1, 2]) {
    now = second * 1000;
    await until(() => counts.arrivals > second * RATE);
  }
  goOn();
  await until(() => counts.ok === counts.arrivals);
  now = 3000;
  recorder.roll();
  const latencies = recorder.whole.histograms.pages.latencies();
  const above = (ms: number) =>
    latencies.counts.reduce((sum, count, i) => sum + ((latencies.ticks[i] ?? 0) > ms * 10 ? count : 0), 0);
  assert.equal(latencies.max, 2000);
  assert.equal(above(990), RATE + 1); // those that were due in the first second
  assert.equal(above(10), 2 * RATE);
  const seconds = recorder.series.map(({ goodPages, waiting }) => [goodPages, waiting]);
  assert.deepEqual(seconds, [
    [0, RATE + 1],
    [0, 2 * RATE + 1],
    [2 * RATE + 1, 0],
  ]);
  assert.equal(recorder.series[2]?.pages.max, 2000);
  assert.equal(recorder.slowest[0]?.latency, 2000);
});

test('a server that leaves ends the run with what was measured', async (t) => {
  let answered = 0;
  const { url, leave } = await faultyServer(t, {
    before: () => {
      if (++answered > MOST) setImmediate(leave);
      return Promise.resolve();
    },
  });
  const words = [url, '--pages', '100/s', '--query', '/items', '--for', '60s', '--ramp', '0s'];
  const { code, result } = await loading(words);
  assert.equal(code, 1);
  assert.ok(result?.interrupted && result.seconds < 60);
  assert.match(result.verdict.reasons.join(), /could not be reached for 10 s.*ECONNREFUSED/);
  assert.ok((result.phases[0]?.counts.ok ?? 0) > 0);
});

test('a user who interrupts gets what was measured, and requests under way are no fault', async (t) => {
  const stop = new AbortController();
  let asked = 0;
  const { url } = await faultyServer(t, {
    before: () => {
      if (++asked <= MOST) return Promise.resolve();
      stop.abort();
      return new Promise(() => undefined);
    },
  });
  const words = [url, '--pages', '100/s', '--query', '/items', '--for', '60s', '--ramp', '0s'];
  const { code, result } = await loading(words, stop.signal);
  assert.ok(result?.interrupted && result.phases.length === 1);
  assert.deepEqual(result.verdict.reasons, []);
  assert.equal(code, 0);
  const { ok = 0, unanswered = 0 } = result.phases[0]?.counts ?? {};
  assert.ok(ok > 0 && ok <= MOST && unanswered > 0, `${ok} answers, and ${unanswered} on their way`);
  assert.match(result.verdict.notes.join(), /requests? had no answer yet when the test was interrupted/);
});

test('a search prints the last rate that held and the first that broke', async (t) => {
  const { url } = await faultyServer(t);
  const words = [
    '--find',
    'p50<0.05ms',
    '--pages',
    '8/s',
    '--query',
    '/items',
    '--for',
    '1s',
    '--ramp',
    '0s',
  ];
  const { result } = await loading([url, ...words]);
  assert.ok(result);
  const { found, phases } = result;
  assert.equal(found?.held, null);
  assert.equal(found.broke, 1);
  assert.deepEqual(
    phases.map(({ kind, asked, held }) => [kind, asked, held]),
    [8, 8, 4, 4, 2, 2, 1, 1].map((asked) => ['step', asked, false]),
    'a rate that breaks is tried twice',
  );
});

test('a rejected key ends the test before it begins', async (t) => {
  const { url } = await faultyServer(t, { status: 401 });
  const { code, result, said } = await loading([url, ...SHORT]);
  assert.deepEqual([code, result], [1, null]);
  assert.match(said, /answered 401: The key is unknown\.; give a key with --key-file FILE/);
});

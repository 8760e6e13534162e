import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Rests } from '../../src/exports/rests.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { awaited, exportRows, order } from '../support/exports/exports.ts';
import { testServer } from '../support/process/server.ts';

const MOST = { longestMs: 20, share: 2 };

/** An export whose clock and requests stand still, unless a test moves them. */
function exportAt(clock: { ms: number; requests: number }) {
  const rested: number[] = [];
  const pause = (ms: number) => {
    rested.push(ms);
    clock.ms += ms;
    return Promise.resolve();
  };
  const rests = new Rests({ ...MOST, begun: () => clock.requests, now: () => clock.ms, pause });
  return { rests, rested };
}

const GOES_ON = new AbortController().signal;

test('an export that no request came beside does not rest', async () => {
  const clock = { ms: 0, requests: 7 };
  const { rests, rested } = exportAt(clock);
  clock.ms = 1_000;
  await rests.take(GOES_ON);
  assert.deepEqual(rested, []);
});

test('an export rests the longer the more requests came, and only once for each', async () => {
  const clock = { ms: 0, requests: 0 };
  const { rests, rested } = exportAt(clock);
  for (const requests of [5, 17, 17, 1_000]) {
    clock.ms += 100;
    clock.requests = requests;
    await rests.take(GOES_ON);
  }
  assert.deepEqual(rested, [3, 10, 20]);
});

test('an export beside many requests works for a third of the time', async () => {
  const clock = { ms: 0, requests: 0 };
  const { rests, rested } = exportAt(clock);
  for (let piece = 0; piece < 3; piece++) {
    clock.ms += 5;
    clock.requests += 1_000;
    await rests.take(GOES_ON);
  }
  assert.deepEqual(rested, [10, 10, 10]);
});

test('clients who look at their exports do not slow them', async () => {
  const clock = { ms: 0, requests: 0 };
  const { rests, rested } = exportAt(clock);
  clock.ms = 20;
  clock.requests = 2;
  await rests.take(GOES_ON);
  assert.deepEqual(rested, []);
});

test('an export that is cancelled ends its rest', async () => {
  const clock = { ms: 0, requests: 0 };
  const rests = new Rests({ ...MOST, begun: () => clock.requests, now: () => clock.ms });
  clock.ms = 100_000;
  clock.requests = 100_000;
  const cancel = new AbortController();
  const resting = rests.take(cancel.signal);
  cancel.abort();
  await assert.rejects(resting, { name: 'AbortError' });
});

test('an export rests when its caller is done with a batch, and passes all on', async () => {
  const clock = { ms: 0, requests: 0 };
  const { rests, rested } = exportAt(clock);
  async function* batches() {
    await Promise.resolve();
    yield* [1, 2, 3];
  }
  const passed: [batch: number, rests: number][] = [];
  for await (const batch of rests.between(batches(), GOES_ON)) {
    passed.push([batch, rested.length]);
    clock.ms += 100;
    clock.requests += 10;
  }
  assert.deepEqual(passed, [
    [1, 0],
    [2, 1],
    [3, 2],
  ]);
});

for (const store of ['sqlite', 'mongodb'] as const)
  test(`${store}: a server counts its requests for exports of plain text into MongoDB, and of Parquet from its own file`, async (t) => {
    const server = await testServer(t, store, 'uws');
    if (!server) return;
    await server.insert(exportRows(10));
    const { mock } = t.mock.getter(Metrics.prototype, 'begun');
    const rests: string[] = [];
    for (const body of [
      { format: 'ndjson', compression: 'none' },
      { format: 'csv', compression: 'none' },
      { format: 'ndjson', compression: 'gzip' },
      { format: 'parquet', compression: 'none' },
    ]) {
      mock.resetCalls();
      await awaited(server.url, (await order(server.url, body)).id);
      if (mock.callCount() > 0) rests.push(`${body.format} ${body.compression}`);
    }
    assert.deepEqual(rests, store === 'mongodb' ? ['ndjson none', 'csv none'] : ['parquet none']);
  });

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Rests, restsOf } from '../../src/exports/rests.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { awaited, exportRows, order } from '../support/exports/exports.ts';
import { testServer } from '../support/process/server.ts';

const MOST = { requestMs: 2, longestMs: 30, share: 2 };

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

/** What rests last behind batches that each took `workedMs`, beside `requests` requests. */
async function restOf(
  rests: (clock: Parameters<typeof restsOf>[2]) => Rests | null,
  workedMs: number,
  requests: number,
): Promise<number | null> {
  const clock = { ms: 0, requests: 0 };
  let rested = 0;
  const pause = (ms: number) => Promise.resolve(void (rested = ms));
  const made = rests({ begun: () => clock.requests, now: () => clock.ms, pause });
  if (!made) return null;
  clock.ms = workedMs;
  clock.requests = requests;
  await made.take(GOES_ON);
  return rested;
}

const GOES_ON = new AbortController().signal;

async function* threeBatches() {
  await Promise.resolve();
  yield* [1, 2, 3];
}

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
  assert.deepEqual(rested, [6, 20, 30]);
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

test('exports rest as docs/operations.md says of their format and of where the file is', async () => {
  const found: Record<string, readonly (number | null)[]> = {};
  for (const [format, compression, isInDatabase] of [
    ['ndjson', 'none', true],
    ['ndjson', 'none', false],
    ['ndjson', 'gzip', true],
    ['parquet', 'none', true],
    ['parquet', 'none', false],
  ] as const) {
    const rests = (clock: Parameters<typeof restsOf>[2]) =>
      restsOf({ format, compression }, isInDatabase ? { isInDatabase } : {}, clock);
    found[`${format} ${compression} ${isInDatabase ? 'in the database' : 'elsewhere'}`] = [
      await restOf(rests, 1_000, 10),
      await restOf(rests, 1_000, 1_000),
      await restOf(rests, 2, 1_000),
    ];
  }
  assert.deepEqual(found, {
    // few requests, many of them, and many behind little work
    'ndjson none in the database': [8, 60, 4],
    'ndjson none elsewhere': [null, null, null],
    'ndjson gzip in the database': [null, null, null],
    'parquet none in the database': [24, 80, 16],
    'parquet none elsewhere': [8, 30, 8],
  });
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

test('an export rests once its batch is written, and passes all on', async () => {
  const clock = { ms: 0, requests: 0 };
  const { rests, rested } = exportAt(clock);
  const writes: (() => void)[] = [];
  const written = () => new Promise<void>((resolve) => writes.push(resolve));
  const passed: number[] = [];
  const read = async () => {
    for await (const batch of rests.between(threeBatches(), written, GOES_ON)) {
      passed.push(batch);
      clock.ms += 100;
      clock.requests += 10;
    }
  };
  const reading = read();
  for (const batch of [1, 2, 3]) {
    while (writes.length === 0) await turn();
    assert.deepEqual([passed.at(-1), rested.length], [batch, batch - 1]);
    writes.pop()?.();
  }
  await reading;
  assert.deepEqual(rested, [16, 16, 16]);
});

test('an export that no request came beside does not wait for its writes', async () => {
  const { rests } = exportAt({ ms: 0, requests: 0 });
  const passed: number[] = [];
  const never = () => Promise.reject(new Error('the export waited'));
  for await (const batch of rests.between(threeBatches(), never, GOES_ON)) passed.push(batch);
  assert.deepEqual(passed, [1, 2, 3]);
});

test('an export whose file has failed does not read on', async () => {
  const clock = { ms: 0, requests: 0 };
  const { rests } = exportAt(clock);
  const passed: number[] = [];
  const read = async () => {
    for await (const batch of rests.between(
      threeBatches(),
      () => Promise.reject(new Error('full')),
      GOES_ON,
    )) {
      passed.push(batch);
      clock.requests += 10;
    }
  };
  await assert.rejects(read(), /full/);
  assert.deepEqual(passed, [1]);
});

for (const store of ['sqlite', 'mongodb'] as const)
  test(`${store}: a server counts its requests for exports of Parquet, and of plain text into MongoDB`, async (t) => {
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
    assert.deepEqual(rests, [...(store === 'mongodb' ? ['ndjson none', 'csv none'] : []), 'parquet none']);
  });

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ExportFile } from '../../src/exports/file.ts';
import { Rests } from '../../src/exports/rests.ts';
import { directoryFiles } from '../../src/store/folder/directory.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { temporaryFolder } from '../support/directory.ts';
import { awaited, exportRows, order } from '../support/exports/exports.ts';
import { testServer } from '../support/process/server.ts';

/** An export whose clock and requests stand still, unless a test moves them. */
function exportAt(clock: { ms: number; requests: number }) {
  const rested: number[] = [];
  const pause = (ms: number) => {
    rested.push(ms);
    clock.ms += ms;
    return Promise.resolve();
  };
  const rests = new Rests({ begun: () => clock.requests, now: () => clock.ms, pause });
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
  const rests = new Rests({ begun: () => clock.requests, now: () => clock.ms });
  clock.ms = 100_000;
  clock.requests = 100_000;
  const cancel = new AbortController();
  const resting = rests.take(cancel.signal);
  cancel.abort();
  await assert.rejects(resting, { name: 'AbortError' });
});

test('the text of a file rests behind each whole piece', async (t) => {
  const clock = { ms: 0, requests: 0 };
  const { rests, rested } = exportAt(clock);
  const files = directoryFiles(await temporaryFolder(t));
  const file = await ExportFile.create(files, 'a1.b2', 'none', rests, GOES_ON);
  for (const bytes of [1, 2 ** 19 - 1, 2 ** 20, 1]) {
    clock.ms += 100;
    clock.requests += 10;
    await file.write(Buffer.alloc(bytes));
  }
  await file.end();
  await file.close();
  assert.deepEqual(rested, [18, 8]);
  assert.equal(file.bytes, 3 * 2 ** 19 + 1);
});

for (const store of ['sqlite', 'mongodb'] as const)
  test(`${store}: a server counts its requests for exports of plain text into MongoDB alone`, async (t) => {
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
    assert.deepEqual(rests, store === 'mongodb' ? ['ndjson none', 'csv none'] : []);
  });

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STATES } from '../../src/exports/export.ts';
import { cancel, claim, isFinal } from '../../src/exports/job.ts';
import { EXPORTS, Jobs } from '../../src/exports/jobs.ts';
import { overlapping } from '../../src/telemetry/counters.ts';
import { Metrics, metricsText } from '../../src/telemetry/metrics.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { openDirectory } from '../support/store/sqlite/sqlite.ts';
import { until } from '../support/store/changes.ts';
import { samples } from '../support/telemetry/metrics.ts';
import { RawClient } from '../support/engine/raw.ts';
import { serverOn, type EngineName, type TestServer } from '../support/process/server.ts';
import { temporaryFolder } from '../support/directory.ts';

/** The samples once one of them has this value. What counts a request may run after its client has the last byte. */
async function samplesWhen({ url }: TestServer, name: string, value: number): Promise<Map<string, number>> {
  let found = new Map<string, number>();
  await until(`${name} is ${value}`, async () => (found = await samples(url)).get(name) === value);
  return found;
}

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`${engine}: /metrics counts requests, rows, bytes and batches by route, and never by raw path`, async (t) => {
    const server = await serverOn(t, { HTTP_ENGINE: engine, MONGODB_URI: '' });
    await server.insert(catalogue(300, 'string').map(({ document }) => document));
    const before = (await samples(server.url)).get('sluice_store_batches_total') ?? 0;
    let bytes = 0;
    for (const path of '/items/row-000000 /items/a /items/b /c /c/stream /items/stream /items?limit=9 /api/users'.split(
      ' ',
    )) {
      const response = await server.get(path, { 'accept-encoding': 'identity' });
      const { byteLength } = await response.arrayBuffer();
      if (path === '/items/stream') bytes = byteLength;
    }
    const found = await samplesWhen(server, 'sluice_requests_in_flight', 1);
    const expected = {
      'sluice_requests_total{route="/items/{id}",resource="items",method="GET",status="200"}': 1,
      'sluice_requests_total{route="/items/{id}",resource="items",method="GET",status="404"}': 2,
      'sluice_requests_total{route="none",method="GET",status="404"}': 2,
      'sluice_requests_total{route="/api/users",resource="users",method="GET",status="200"}': 1,
      'sluice_requests_total{route="/items/stream",resource="items",method="GET",status="200"}': 1,
      'sluice_request_duration_seconds_count{route="/items/{id}",resource="items"}': 3,
      'sluice_rows_sent_total{route="/items/stream",resource="items"}': 300,
      'sluice_rows_sent_total{route="/items",resource="items"}': 9,
      'sluice_sent_bytes_total{route="/items/stream",resource="items"}': bytes,
      'sluice_store_seconds_count{operation="insert"}': 1,
      sluice_streams_open: 0,
      sluice_streams_stalled: 0,
    };
    assert.deepEqual(
      Object.fromEntries(Object.keys(expected).map((name) => [name, found.get(name)])),
      expected,
    );
    // Three rows by id, two for the stream, a page of items and one of users; a look at the exports may come in between.
    assert.ok((found.get('sluice_store_batches_total') ?? 0) >= before + 7);
    assert.ok((found.get('sluice_store_log_bytes') ?? 0) > 0);
    assert.ok((found.get('process_resident_memory_bytes') ?? 0) > 1e6);
    assert.ok(found.has('nodejs_eventloop_lag_p99_seconds'));
    assert.deepEqual(
      [...found.keys()].filter((name) => /row-|"\/c"/.test(name)),
      [],
    );
  });

test('a stream whose reader takes nothing is open and stalled, then cut', async (t) => {
  const server = await serverOn(t, { HTTP_ENGINE: 'uws', MONGODB_URI: '' });
  const rows = catalogue(1_800, 'string');
  await server.insert(rows.map(({ document }) => ({ ...document, text: 'x'.repeat(8000) })));
  const client = await RawClient.connect(t, Number(new URL(server.url).port));
  await client
    .send('GET /items/stream HTTP/1.1\r\nHost: localhost\r\n\r\n')
    .until((came) => came.includes('row-'));
  client.socket.pause();
  const found = await samplesWhen(server, 'sluice_streams_stalled', 1);
  assert.equal(found.get('sluice_streams_open'), 1);
  const waited = found.get('sluice_socket_wait_seconds_total') ?? 0;
  assert.ok(waited > 0.9, `it waits for a second before it is stalled, and waited ${waited}`);
  client.socket.destroy();
  await samplesWhen(server, 'sluice_streams_open', 0);
  await samplesWhen(server, 'sluice_streams_stalled', 0);
  const cut = 'sluice_answers_cut_total{route="/items/stream",resource="items",end="client"}';
  await samplesWhen(server, cut, 1);
});

test('exports are counted by state, including those of other processes and earlier runs', async (t) => {
  const DATA_DIR = await temporaryFolder(t);
  const store = await openDirectory(DATA_DIR);
  const now = new Date();
  const jobs = new Jobs({ records: await store.records(EXPORTS), perClient: () => 3, now: () => now });
  const request = { resource: 'items', query: 'sort=id_asc', format: 'ndjson', compression: 'none' } as const;
  const final = { finishedAt: now, expiresAt: new Date(now.getTime() + 3_600_000) };
  const lease = { token: 'aaaa', until: final.expiresAt };
  const made = await Promise.all(
    [1, 2, 3].map(() => jobs.create('ada', () => Promise.resolve(request), t.signal)),
  );
  for (const { id } of made.slice(1))
    await jobs.change(id, (job) => (isFinal(job) ? job : cancel(job, final)));
  await jobs.change(made[0]?.id ?? '', (job) => (isFinal(job) ? job : claim(job, lease)));
  await store.close();

  const server = await serverOn(t, { MONGODB_URI: '', DATA_DIR });
  const found = await samplesWhen(server, 'sluice_exports{state="cancelled"}', 2);
  const counts = STATES.map((state) => [state, found.get(`sluice_exports{state="${state}"}`)]);
  assert.deepEqual(Object.fromEntries(counts), {
    queued: 0,
    running: 1,
    complete: 0,
    failed: 0,
    cancelled: 2,
  });
  assert.equal(found.get('sluice_exports_running'), 0, 'another process has its lease');
});

test('waits that overlap add up, those that are not over included', () => {
  let now = 100;
  const waiting = overlapping(() => now);
  const after = (ms: number, more: number) => {
    now += ms;
    return waiting(more);
  };
  assert.equal(after(50, 1), 0, 'nothing waited yet');
  assert.equal(after(10, 1), 10);
  assert.equal(after(5, -1), 20, 'two at a time');
  assert.equal(after(7, 0), 27);
  assert.equal(after(3, -1), 30);
  assert.equal(after(99, 0), 30);
});

test('the time of the transcoder is counted, in each format', async (t) => {
  const server = await serverOn(t, { MONGODB_URI: '' });
  await server.insert(catalogue(300, 'string').map(({ document }) => document));
  const spent = async () => (await samples(server.url)).get('sluice_transcode_seconds_total') ?? NaN;
  const streams = ['ndjson', 'csv', 'arrow'].map((format) => `/items/stream?format=${format}`);
  for (const path of ['/items?limit=100', ...streams]) {
    const before = await spent();
    await (await server.get(path)).arrayBuffer();
    assert.ok((await spent()) > before, path);
  }
});

test('metrics of several processes are added up', async () => {
  const common = {
    runningExports: () => 0,
    overloaded: () => false,
    transcodedMs: () => 0,
    settingsFaults: () => ({ API_KEYS_FILE: 2, RESOURCES_FILE: null }),
  };
  const one = new Metrics();
  const other = new Metrics();
  const items = { age: 9, sequence: 3, rows: 10, attempt: 0.5, failures: 1, read: 2, stored: 1 };
  const later = { ...items, age: 4, sequence: 4, walked: 7, expected: 12 };
  one.watch({
    ...common,
    editions: () => new Map([['items', items]]),
    openStreams: () => 2,
    exports: () => ({ queued: 4, failed: 0 }),
  });
  other.watch({
    ...common,
    editions: () => new Map([['items', later]]),
    openStreams: () => 3,
    exports: () => ({ queued: 3, failed: 0 }),
  });
  one.batchRead(10);
  other.batchRead(5);
  const text = await metricsText([await one.values(), await other.values()]);
  assert.match(text, /^sluice_streams_open 5$/m);
  assert.match(text, /^sluice_store_rows_total 15$/m);
  assert.match(text, /^sluice_exports{state="queued"} 4$/m, 'both count the same exports');
  assert.match(text, /^sluice_exports{state="failed"} 0$/m);
  assert.match(text, /^sluice_settings_faults{setting="API_KEYS_FILE"} 2$/m);
  assert.doesNotMatch(text, /RESOURCES_FILE/);
  const ofEditions = [...text.matchAll(/^sluice_edition_(\w+){resource="items"} (\S+)$/gm)];
  assert.deepEqual(Object.fromEntries(ofEditions.map(([, name, value]) => [name, Number(value)])), {
    age_seconds: 4,
    sequence: 4,
    rows: 10,
    attempt_seconds: 0.5,
    failures_total: 2,
    chunks_read_total: 4,
    chunks_stored_total: 2,
    walk_rows: 7,
    walk_expected_rows: 12,
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storeUnavailable } from '../../src/base/errors.ts';
import type { ExportRequest, Job } from '../../src/exports/job.ts';
import { keyOf, makeBookmark } from '../../src/store/bookmark.ts';
import { BSON } from '../../src/store/values/bson.ts';
import { BY_ID, feedOf, keysSince } from '../support/store/changes.ts';
import { LEASE_MS, twoHandles, Worker, type Handle } from '../support/exports/export-worker.ts';
import { awaited, exportRows, order } from '../support/exports/exports.ts';
import { testServer, type TestServer } from '../support/process/server.ts';
import { decodeFeedCursor } from '../support/resources/tokens.ts';

const STORES = ['sqlite', 'mongodb'] as const;
const REQUEST: ExportRequest = {
  resource: 'items',
  query: 'sort=id_asc&fields=price,note',
  format: 'ndjson',
  compression: 'none',
};
const BEAT_MS = 1_000;
const ROWS = exportRows(13_000).map((row) => BSON.serialize(row)); // two pieces and a remainder

let writes = 0;

/** An item that differs from every other one: a write that changes nothing is no change. */
function itemOf(_id: string): Uint8Array {
  return BSON.serialize({ _id, category: 'x', price: 1, note: ++writes });
}

async function write({ store }: Handle, ...ids: string[]): Promise<void> {
  assert.deepEqual((await store.items.insert(ids.map(itemOf), 'replace')).refused, []);
}

/** The ids that changed since the place in the record of a job. */
async function changedSince(job: Job | null, { store }: Handle): Promise<unknown[]> {
  assert.ok(job?.progress.changes);
  const { place, identity } = decodeFeedCursor(job.progress.changes, 'items', BY_ID);
  assert.equal(identity ?? null, job.progress.identity);
  const { keys } = await keysSince(feedOf(store.items), place);
  return keys.map((key) => keyOf(key)._id).sort();
}

for (const name of STORES)
  test(`${name}: an export that a second worker makes gives a place before its own first read`, async (t) => {
    const handles = await twoHandles(t, name);
    if (!handles) return;
    const [first, second] = handles;
    await first.store.items.insert(ROWS, 'fail');
    let time = Date.now();
    const now = () => new Date(time);
    const one: Worker = new Worker(first, {
      now,
      writes: async (piece) => {
        if (piece === 2) await one.beat(BEAT_MS);
        if (piece === 3) throw storeUnavailable(new Error('away'));
      },
    });
    let isBegun = false;
    const other = new Worker(second, {
      now,
      reads: async () => {
        if (!isBegun) await write(second, 'i0000002');
        isBegun = true;
      },
    });
    const { id, progress } = await one.jobs.create('ada', () => Promise.resolve(REQUEST), t.signal);
    assert.equal(progress.changes, null);
    await write(first, 'before');
    assert.equal(await one.work(id), 1_000);
    const kept = await other.jobs.get(id, t.signal);
    assert.ok(kept && kept.progress.rows > 0 && kept.progress.changes);
    await write(first, 'i0000001'); // the second attempt reads it
    time += LEASE_MS;
    assert.equal(await other.work(id), null);
    const done = await other.jobs.get(id, t.signal);
    assert.equal(done?.state, 'complete');
    assert.deepEqual(await changedSince(done, second), ['i0000002']);
    await Promise.all([one.close(), other.close()]);
  });

/** Orders an export, and returns the URL of its changes. Null when it gives no place. */
async function placeOf(server: TestServer, body: object, path: string): Promise<string | null> {
  const accepted = await order(server.url, body);
  assert.equal(accepted.changes, undefined);
  const { changes, file } = await awaited(server.url, accepted.id);
  assert.ok(file);
  for (const headers of [{}, { range: 'bytes=1-2' }]) {
    const response = await server.get(file.url, headers);
    await response.arrayBuffer();
    assert.equal(response.headers.get('changes-from'), changes ?? null);
  }
  return changes === undefined ? null : `${path}since=${changes}`;
}

/** The ids of rows that changed, as HTTP returns them. */
async function idsSince(server: TestServer, path: string | null): Promise<string[]> {
  assert.ok(path !== null);
  const response = await server.get(path);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return [...text.matchAll(/^\{(?:"removed":\{)?"id":"?([^",}]+)/gm)].map(([, id = '']) => id).sort();
}

for (const name of STORES)
  test(`${name}: a complete export has its place in its JSON and as Changes-From of its file`, async (t) => {
    const server = await testServer(t, name, 'uws');
    if (!server) return;
    const { items } = server.store;
    const put = (...ids: string[]) => items.insert(ids.map(itemOf), 'replace');
    await put('a', 'b');
    const sorted = { category: 'x', format: 'csv', compression: 'gzip', sort: 'price_desc' };
    const path = await placeOf(server, sorted, '/items/changes?category=x&');
    assert.deepEqual(await idsSince(server, path), []);
    await put('b', 'c');
    await items.remove([makeBookmark({ _id: 'a' })]);
    assert.deepEqual(await idsSince(server, path), ['a', 'b', 'c']);
    assert.equal(await placeOf(server, { sort: 'price_asc', min_price: 1 }, ''), null);
  });

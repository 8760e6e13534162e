import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Export } from '../../src/exports/export.ts';
import { Ends } from '../../src/exports/ends.ts';
import { bearer, keyedServer } from '../support/access/keyed.ts';
import { problemOf } from '../support/answers.ts';
import { exportRows, order } from '../support/exports/exports.ts';
import { onServers } from '../support/process/each-server.ts';
import { serverOn, testServer, type TestServer } from '../support/process/server.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { until } from '../support/store/changes.ts';

const ROWS = exportRows(100);
const BODY = { format: 'csv' };

/** Holds the reads of items until the function is called. Resolves `begun` with the first of them. */
function held(server: TestServer) {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const begun = new Promise<void>((resolve) => {
    server.instead.read = async (read, ...call) => {
      resolve();
      await released;
      return read(...call);
    };
  });
  return { begun, release };
}

/** Resolves when so many requests wait. */
function waiters(server: TestServer, count: number, headers = {}): Promise<void> {
  return until(`${count} wait`, async () => {
    const text = await (await server.get('/metrics', headers)).text();
    return text.includes(`sluice_streams_open ${count}\n`);
  });
}

async function waited(
  url: string,
  id: string,
  query: string,
  headers: Record<string, string> = {},
): Promise<Export> {
  const response = await fetch(`${url}/exports/${id}${query}`, { headers });
  assert.equal(response.status, 200);
  return (await response.json()) as Export;
}

onServers('combinations', (test) => {
  test('a request waits for the end of an export, and is answered at once when there is nothing to wait for', async (server) => {
    await server.insert(ROWS);
    const { begun, release } = held(server);
    const { id } = await order(server.url, BODY);
    await begun;
    const began = performance.now();
    assert.equal((await waited(server.url, id, '?wait=1')).state, 'running');
    assert.ok(performance.now() - began >= 990, 'it waited');
    assert.equal((await waited(server.url, id, '?wait=0')).state, 'running');
    const waiting = Array.from({ length: 20 }, () => waited(server.url, id, '?wait=60'));
    await waiters(server, 20);
    release();
    for (const done of await Promise.all(waiting)) assert.equal(done.state, 'complete');
    assert.equal((await waited(server.url, id, '?wait=60')).state, 'complete');
    for (const wrong of ['-1', '61', '1.5', 'x', '', '1s']) {
      const { status, code } = await problemOf(await server.get(`/exports/${id}?wait=${wrong}`));
      assert.deepEqual([status, code], [400, 'invalid-parameter'], wrong);
    }
  });
});

test('who waits hears of a cancelled export and of one that is gone, and a stop of the server ends the wait', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws', { STREAM_GRACE: '60 s' });
  await server.insert(ROWS);
  const { begun, release } = held(server);
  const cancelled = await order(server.url, BODY);
  const other = await order(server.url, BODY);
  await begun;
  const first = waited(server.url, cancelled.id, '?wait=60');
  const second = waited(server.url, other.id, '?wait=60');
  await waiters(server, 2);
  await fetch(`${server.url}/exports/${cancelled.id}`, { method: 'DELETE' });
  assert.equal((await first).state, 'cancelled');
  const closed = server.close();
  assert.match((await second).state, /queued|running/);
  release();
  await closed;
});

test('who waits at one server hears of an export that another one runs', async (t) => {
  const MONGODB_URI = await testMongo(t);
  if (MONGODB_URI === null) return;
  const runs = await serverOn(t, { MONGODB_URI });
  await runs.insert(ROWS);
  const waits = await serverOn(t, { MONGODB_URI });
  const { begun, release } = held(runs);
  held(waits); // should it take the export, it does not end
  const { id } = await order(runs.url, BODY);
  await begun;
  const waiting = waited(waits.url, id, '?wait=60');
  await waiters(waits, 1);
  release();
  assert.equal((await waiting).state, 'complete');
});

test('a wait takes a stream of the client, and ends with its key', async (t) => {
  const keys = [{ name: 'ada', streams: 1 }, { name: 'bob' }];
  const server = await keyedServer(t, 'sqlite', keys, [{ name: 'items', rows: ROWS, indexes: [] }]);
  const { begun, release } = held(server);
  const { id } = await order(server.url, BODY, bearer('ada'));
  await begun;
  const waiting = server.as('ada', `/exports/${id}?wait=60`);
  await waiters(server, 1, bearer('bob'));
  const refused = await problemOf(await server.as('ada', `/exports/${id}?wait=60`));
  assert.deepEqual([refused.status, refused.code], [429, 'too-many-streams']);
  assert.equal((await server.as('ada', `/exports/${id}`)).status, 200);
  assert.equal((await server.as('bob', `/exports/${id}?wait=60`)).status, 404);
  await server.rewrite([{ name: 'bob' }]);
  release();
  const { status, code } = await problemOf(await waiting);
  assert.deepEqual([status, code], [403, 'forbidden']);
});

test('however many wait, each export is looked at once a second, and no two at the same time', async () => {
  let looks = 0;
  const began = performance.now();
  let atOnce = 0;
  let most = 0;
  const ends = new Ends(async () => {
    looks++;
    most = Math.max(most, ++atOnce);
    await new Promise(setImmediate);
    atOnce--;
    return false;
  });
  const ids = Array.from({ length: 300 }, (_, n) => String(n % 3));
  await Promise.all(ids.map((id) => ends.wait(id, 2_500, new AbortController().signal)));
  ends.close();
  const seconds = Math.floor((performance.now() - began) / 1000);
  assert.ok(looks <= 3 * seconds, `${looks} looks in ${seconds} s`);
  assert.equal(most, 1);
});

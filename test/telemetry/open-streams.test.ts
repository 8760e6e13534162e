import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bearer, keyedServer, type KeyedServer, type KeyGiven } from '../support/access/keyed.ts';
import { auditOf, logTo, untilLogged } from '../support/access/log-lines.ts';
import { begun, problemOf } from '../support/answers.ts';
import { serverOn, type EngineName } from '../support/process/server.ts';
import { filled } from '../support/resources/resources.ts';
import { samples } from '../support/telemetry/metrics.ts';
import { untilStreams } from '../support/telemetry/streams.ts';

const TEXT = 'x'.repeat(100_000);
const ORDERS = {
  name: 'orders',
  rows: Array.from({ length: 200 }, (_, n) => ({ _id: n, text: TEXT })),
  indexes: [],
};
const KEYS: readonly KeyGiven[] = [
  { name: 'all' },
  { name: 'watcher', resources: [], actions: ['metrics'] },
  { name: 'shop', resources: ['orders'] },
];
const CUT = { method: 'DELETE' };
const PLAIN = { headers: { 'accept-encoding': 'identity' } };

/** The streams as a client sees them, once the only one is in this state. */
const untilOne = (server: KeyedServer, state: string, as = 'watcher') =>
  untilStreams(
    () => server.as(as, '/metrics/streams'),
    (streams) => streams.length === 1 && streams[0]?.state === state,
  );
const untilNone = (server: KeyedServer) =>
  untilStreams(
    () => server.as('watcher', '/metrics/streams'),
    (streams) => streams.length === 0,
  );

for (const HTTP_ENGINE of ['node', 'uws'] satisfies EngineName[])
  test(`on ${HTTP_ENGINE} a key without limits cuts a stream that waits, and its slot comes back`, async (t) => {
    const lines: string[] = [];
    const server = await keyedServer(
      t,
      'sqlite',
      KEYS,
      [ORDERS],
      { HTTP_ENGINE, STREAM_LIMIT: '1' },
      { log: logTo(lines) },
    );
    const rest = await begun(server.as('shop', '/orders/stream?checkpoints=false', PLAIN));
    const { data, mayCut } = await untilOne(server, 'waiting');
    const { id = '', since = '', rows = 0, bytes = 0, ...stream } = data[0] ?? {};
    assert.deepEqual(stream, {
      client: 'key:shop',
      route: '/orders/stream',
      resource: 'orders',
      type: 'application/x-ndjson',
      state: 'waiting',
    });
    assert.ok(
      rows > 0 && rows < 200 && bytes >= 15_000 && bytes < 20_000_000,
      `${rows} rows, ${bytes} bytes`,
    );
    assert.ok(Date.now() - Date.parse(since) < 60_000, since);
    assert.equal(mayCut, false);
    assert.equal((await untilOne(server, 'waiting', 'all')).mayCut, true);

    const path = `/metrics/streams/${id}`;
    assert.equal((await server.as('shop', '/metrics/streams')).status, 403);
    for (const name of ['watcher', 'shop']) {
      const { status, detail } = await problemOf(server.as(name, path, CUT));
      assert.deepEqual([status, detail], [403, 'Only a key without limits may do this.'], name);
    }
    assert.equal((await problemOf(server.as('shop', '/orders/stream'))).code, 'too-many-streams');
    assert.equal((await server.as('all', path, CUT)).status, 204);
    await assert.rejects(rest(), /terminated/, 'a cut is never a clean end');
    await untilNone(server);
    assert.equal((await problemOf(server.as('all', path, CUT))).code, 'not-found');

    await untilLogged(lines, /"audit":"exported"/);
    const by = lines.find((line) => line.includes('an operator cut a stream')) ?? '';
    assert.match(by, /"by":"key:all","stream":\{"id":"[^"]+","client":"key:shop"/);
    assert.equal(auditOf(lines).find(({ audit }) => audit === 'exported')?.end, 'operator');
    const figures = await samples(new URL(server.url), bearer('all'));
    assert.equal(figures.get('sluice_streams_open'), 0);
    const cuts = 'sluice_answers_cut_total{route="/orders/stream",resource="orders",end="operator"}';
    assert.equal(figures.get(cuts), 1);
    assert.doesNotMatch(lines.join(''), /secret-of|"level":50/);
    const again = await server.as('shop', '/orders/stream', PLAIN);
    assert.equal(again.status, 200, 'the slot is free');
    await again.body?.cancel();
    await untilNone(server);
  });

for (const HTTP_ENGINE of ['node', 'uws'] satisfies EngineName[])
  test(`on ${HTTP_ENGINE} a cut ends followers, compressed streams and files`, async (t) => {
    const server = await keyedServer(t, 'sqlite', KEYS, [ORDERS], { HTTP_ENGINE });
    const { id: file } = await server.exported('shop', { resource: 'orders' });
    for (const [path, coding, state] of [
      ['/orders/stream?follow=true&fields=id', 'identity', 'following'],
      ['/orders/stream?follow=true&fields=id', 'gzip', 'following'],
      [`/exports/${file}/file`, 'identity', 'waiting'],
    ] as const) {
      const rest = await begun(server.as('shop', path, { headers: { 'accept-encoding': coding } }));
      const { data } = await untilOne(server, state);
      assert.equal(data[0]?.resource, 'orders', path);
      assert.equal((await server.as('all', `/metrics/streams/${data[0].id}`, CUT)).status, 204, path);
      await assert.rejects(rest(), /terminated/, `${path} ${coding}`);
      await untilNone(server);
    }
    assert.equal((await samples(new URL(server.url), bearer('all'))).get('sluice_streams_open'), 0);
  });

test('without keys everybody sees and cuts streams, and no address is shown; a page elsewhere can do neither', async (t) => {
  const server = await serverOn(t, await filled(t, 'sqlite', [ORDERS]));
  const rest = await begun(server.get('/orders/stream?follow=true&fields=id'));
  const { data, mayCut } = await untilStreams(
    () => server.get('/metrics/streams'),
    (streams) => streams.length === 1,
  );
  assert.deepEqual([data[0]?.client, mayCut], ['', true]);
  const path = `/metrics/streams/${data[0]?.id}`;
  const preflight = await fetch(server.url + path, {
    method: 'OPTIONS',
    headers: { origin: 'https://a.example', 'access-control-request-method': 'DELETE' },
  });
  assert.equal(preflight.headers.get('access-control-allow-origin'), null);
  assert.equal((await fetch(server.url + path, CUT)).status, 204);
  await assert.rejects(rest(), /terminated/);
});

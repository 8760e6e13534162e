import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON } from '../../../src/store/values/bson.ts';
import { BY_ID } from '../../support/store/changes.ts';
import { testServer, type TestServer } from '../../support/process/server.ts';
import { decodeFeedCursor } from '../../support/resources/tokens.ts';

async function filled(server: TestServer): Promise<void> {
  const rows = Array.from({ length: 900 }, (_, n) => ({
    _id: `a${String(n).padStart(4, '0')}`,
    category: 'x',
    price: n,
    filler: 'x'.repeat(500),
  }));
  await server.store.items.insert(
    rows.map((row) => BSON.serialize(row)),
    'fail',
  );
}

/** The time that Changes-From requires of every read of its set. */
function seenOf(response: Response): bigint {
  const cursor = response.headers.get('changes-from');
  assert.ok(cursor !== null);
  const { seen } = decodeFeedCursor(cursor, 'items', BY_ID).place;
  assert.ok(seen !== undefined);
  return seen;
}

/** The earliest times of the reads that a request causes. */
async function timesOf(server: TestServer, path: string): Promise<readonly (bigint | undefined)[]> {
  const times: (bigint | undefined)[] = [];
  server.instead.read = (read, plan, ...more) => {
    times.push(plan.since);
    return read(plan, ...more);
  };
  try {
    const response = await server.get(path);
    assert.equal(response.status, 200);
    await response.text();
  } finally {
    server.instead.read = undefined;
  }
  assert.ok(times.length > 0);
  return times;
}

test('a stream continued by cursor and the parts of a set read nothing older than the place of their changes', async (t) => {
  const server = await testServer(t, 'mongodb', 'uws', { RATE_LIMIT: 'off' });
  if (!server) return;
  await filled(server);
  const whole = await server.get('/items/stream?checkpoints=true&fields=price');
  const lines = (await whole.text()).trim().split('\n');
  const cursors = lines.flatMap((line) => /"cursor":"([\w-]+)"/.exec(line)?.[1] ?? []);
  assert.ok(cursors.length > 0);
  const cursor = cursors[0] ?? '';
  for (const path of [
    `/items/stream?cursor=${cursor}`,
    `/items/stream?checkpoints=true&limit=1&cursor=${cursor}`,
  ])
    for (const since of await timesOf(server, path)) assert.equal(since, seenOf(whole), path);
  const divided = await server.get('/items/partitions?n=3');
  const { partitions } = (await divided.json()) as { partitions: { url: string }[] };
  assert.ok(partitions.length > 1);
  for (const { url } of partitions)
    for (const since of await timesOf(server, url)) assert.equal(since, seenOf(divided), url);
  const cut = await server.get(`${partitions[0]?.url}&checkpoints=true&limit=1`);
  const [, ofPart] = /"cursor":"([\w-]+)"/.exec(await cut.text()) ?? [];
  for (const since of await timesOf(server, `${partitions[0]?.url}&cursor=${ofPart}`))
    assert.equal(since, seenOf(divided));
  const onPage = await server.get(`/items?limit=2&cursor=${cursor}`);
  assert.equal(onPage.status, 200, 'pages go on after a row of a stream');
  await onPage.text();
});

test('a stream that follows keeps no batch when its fields are refused', async (t) => {
  const server = await testServer(t, 'sqlite', 'node', { RATE_LIMIT: 'off' });
  await server.store.items.insert([BSON.serialize({ _id: 'a', category: 'x', price: 1 })], 'fail');
  const response = await server.get('/items/stream?follow=true&fields=,');
  assert.deepEqual([response.status, server.slots.taken], [400, 0]);
});

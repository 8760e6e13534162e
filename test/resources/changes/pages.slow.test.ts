import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Document, Long } from 'mongodb';
import { BSON } from '../../../src/store/values/bson.ts';
import { openStreams, until } from '../../support/store/changes.ts';
import { Copy } from '../../support/resources/copy.ts';
import { bearer, keyedServer } from '../../support/access/keyed.ts';
import { testClient } from '../../support/store/mongo/mongo.ts';
import type { StoreName } from '../../support/process/server.ts';

const READERS = 10;
const KEPT = { name: 'kept' };
const LOST = { name: 'lost' };

/** Followers of the items that are up to date: as many with a key that is kept as with one that the test takes away. */
async function followed(t: TestContext, store: StoreName) {
  const settings = { RATE_LIMIT: 'off', STREAM_LIMIT: 'off' };
  const server = await keyedServer(t, store, [KEPT, LOST], [], settings);
  if (!server) return null;
  const state = { isOver: false };
  const readers = [KEPT, LOST].flatMap(({ name }) =>
    Array.from({ length: READERS }, () => {
      const copy = new Copy(false, bearer(name));
      const answer = copy.read(`${server.url}/items/changes?follow=true`, { until: () => state.isOver });
      return { name, copy, answer };
    }),
  );
  const all = (what: string, holds: (copy: Copy) => boolean, name?: string) =>
    until(what, () =>
      Promise.resolve(readers.every((one) => (name !== undefined && one.name !== name) || holds(one.copy))),
    );
  const put = (price: number) =>
    server.store.items.insert([BSON.serialize({ _id: 'a', category: 'x', price })], 'replace');
  const has = (price: number) => (copy: Copy) => copy.rows.get('"a"')?.includes(`"price":${price}`) === true;
  await all('all are up to date', ({ isUpToDate }) => isUpToDate);
  await put(1);
  await all('all have the first change', has(1));
  const end = async () => {
    state.isOver = true;
    await put(9);
    await Promise.all(readers.map(({ answer }) => answer));
  };
  return { server, readers, all, put, has, end };
}

for (const store of ['sqlite', 'mongodb'] as const) {
  test(`followers of ${store} whose key is taken away get no other page, and the others do`, async (t) => {
    const opened = await followed(t, store);
    if (!opened) return;
    const { server, readers, all, put, has, end } = opened;
    assert.ok(await server.rewrite([KEPT]));
    await put(2);
    await all('the others have the change', has(2), KEPT.name);
    for (const { copy, answer } of readers.filter(({ name }) => name === LOST.name)) {
      const { isWhole, end: last } = await answer;
      assert.deepEqual([isWhole, last, has(2)(copy)], [false, null, false]);
    }
    await end();
  });

  test(`followers of ${store} at rest get a checkpoint and an end when the server stops`, async (t) => {
    const opened = await followed(t, store);
    if (!opened) return;
    void opened.server.close();
    for (const { answer } of opened.readers) {
      const { isWhole, end, lines } = await answer;
      assert.deepEqual([isWhole, end?.rows, end?.upToDate, end?.more], [true, 1, true, true]);
      assert.match(lines.at(-2) ?? '', /^\{"checkpoint":/);
    }
  });
}

test('followers of mongodb get what changes while the server of the change stream ends it', async (t) => {
  const opened = await followed(t, 'mongodb');
  if (!opened) return;
  const { server, all, put, has, end } = opened;
  const client = testClient(t, server.mongo);
  let cursors: Long[] = [];
  await until('there is one change stream', async () => {
    cursors = (await openStreams(client)).map(({ cursor }) => (cursor as Document).cursorId as Long);
    return cursors.length === 1;
  });
  await client.db().command({ killCursors: '$cmd.aggregate', cursors });
  await put(2);
  await all('all have the change', has(2));
  await end();
});

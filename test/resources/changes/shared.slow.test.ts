import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON } from '../../../src/store/bson.ts';
import { feedOf } from '../../support/store/changes.ts';
import { Copy } from '../../support/resources/copy.ts';
import { deferred } from '../../support/engine/raw.ts';
import { testClient } from '../../support/store/mongo/mongo.ts';
import { testMongo } from '../../support/store/mongo/mongod.ts';
import { serverOn, testServer } from '../../support/process/server.ts';

const FOLLOWERS = 100;
const CHANGES = 3;

for (const store of ['sqlite', 'mongodb'] as const)
  test(
    `a hundred followers of ${store} cause few look-ups of a row that changed, and all get it`,
    { timeout: 60_000 },
    async (t) => {
      const server = await testServer(t, store, 'uws', { RATE_LIMIT: 'off', STREAM_LIMIT: '200' });
      if (!server) return;
      const changes = feedOf(server.store.items);
      const lookUp = changes.lookUp.bind(changes);
      let lookUps = 0;
      changes.lookUp = (...call) => {
        lookUps++;
        return lookUp(...call);
      };
      const start = new Copy();
      await start.read(`${server.url}/items/changes`);
      const path = `/items/changes?since=${start.cursor}&follow=true`;
      let ready = 0;
      let got = 0;
      let all = deferred();
      const left = Array.from({ length: FOLLOWERS }, async () => {
        let seen = -1;
        const { status } = await new Copy().read(server.url + path, {
          until: (copy) => {
            if (seen < 0 && copy.isUpToDate && ++ready === FOLLOWERS) all.resolve();
            if (copy.isUpToDate) seen = Math.max(seen, 0);
            const n = Number(/"price":(\d+)/.exec(copy.rows.get('"a"') ?? '')?.[1] ?? 0);
            if (n > seen && ++got === FOLLOWERS) all.resolve();
            seen = Math.max(seen, n);
            return n === CHANGES;
          },
        });
        assert.equal(status, 200);
      });
      await Promise.race([all.promise, Promise.all(left)]);
      for (let n = 1; n <= CHANGES; n++) {
        [all, got] = [deferred(), 0];
        await server.store.items.insert([BSON.serialize({ _id: 'a', category: 'x', price: n })], 'replace');
        await all.promise;
      }
      await Promise.all(left);
      t.diagnostic(`${lookUps} look-ups of ${CHANGES} changes`);
      assert.ok(
        lookUps <= 5 * CHANGES,
        `${lookUps} look-ups for ${FOLLOWERS} followers of ${CHANGES} changes`,
      );
    },
  );

test('six changes reach the followers of MongoDB without cursors of their own', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const server = await serverOn(t, { MONGODB_URI: uri, RATE_LIMIT: 'off', STREAM_LIMIT: '200' });
  const changes = feedOf(server.store.items);
  let reads = 0;
  const read = changes.read.bind(changes);
  changes.read = (...call) => {
    reads++;
    return read(...call);
  };
  const copies = Array.from({ length: FOLLOWERS }, () => new Copy());
  let isOver = false;
  const lines = new EventTarget();
  const done = copies.map((copy) =>
    copy.read(`${server.url}/items/changes?follow=true`, {
      until: () => {
        lines.dispatchEvent(new Event('line'));
        return isOver;
      },
    }),
  );
  const all = (holds: (copy: Copy) => boolean) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!copies.every(holds)) return;
        lines.removeEventListener('line', look);
        resolve();
      };
      lines.addEventListener('line', look);
      look();
    });
  await all((copy) => copy.isUpToDate);
  const database = testClient(t, uri).db();
  await database.command({ profile: 2 });
  const before = reads;
  for (let n = 1; n <= 6; n++) {
    await server.store.items.insert([BSON.serialize({ _id: 'a', category: 'x', price: n })], 'replace');
    await all((copy) => copy.isUpToDate && copy.rows.get('"a"')?.includes(`"price":${n}`) === true);
  }
  await database.command({ profile: 0 });
  const aggregates = await database
    .collection('system.profile')
    .countDocuments({ 'command.aggregate': { $exists: true } });
  assert.ok(aggregates <= 12, `${aggregates} aggregates for six changes`);
  assert.ok(
    reads - before <= 12,
    `${reads - before} reads of the log by ${FOLLOWERS} followers that share a room`,
  );
  isOver = true;
  await server.store.items.insert([BSON.serialize({ _id: 'a', category: 'x', price: 7 })], 'replace');
  await Promise.all(done);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON } from '../../../src/store/values/bson.ts';
import type { ChangeFeed, ScopeLog } from '../../../src/store/change-feed.ts';
import { bearer, keyedServer } from '../../support/access/keyed.ts';
import { feedOf, until } from '../../support/store/changes.ts';
import { keepImages } from '../../support/store/parts.ts';
import { Copy } from '../../support/resources/copy.ts';
import { testClient } from '../../support/store/mongo/mongo.ts';
import { testMongo } from '../../support/store/mongo/mongod.ts';
import { serverOn } from '../../support/process/server.ts';

const FOLLOWERS = 100;
const CHANGES = 6;
/** The most reads of the log, look-ups of rows, and cursors of MongoDB that the changes may cause, and the late at first. */
const MOST = 3 * CHANGES;

for (const store of ['sqlite', 'mongodb'] as const)
  test(
    `a hundred followers of ${store} cause few look-ups of a row that changed, and all get it`,
    { timeout: 60_000 },
    async (t) => {
      const uri = store === 'mongodb' ? await testMongo(t) : '';
      if (uri === null) return;
      const server = await serverOn(t, { MONGODB_URI: uri, RATE_LIMIT: 'off', STREAM_LIMIT: '200' });
      const changes = feedOf(server.store.items);
      const reads = t.mock.method(changes, 'read').mock;
      const lookUps = t.mock.method(changes, 'lookUp').mock;
      const put = (price: number) =>
        server.store.items.insert([BSON.serialize({ _id: 'a', category: 'x', price })], 'replace');
      const copies = Array.from({ length: FOLLOWERS }, () => new Copy());
      let isOver = false;
      const done = copies.map((copy) =>
        copy.read(`${server.url}/items/changes?follow=true`, { until: () => isOver }),
      );
      const all = (holds: (copy: Copy) => boolean) =>
        until('all have it', () => Promise.resolve(copies.every(holds)));
      await all((copy) => copy.isUpToDate);
      const database = uri === '' ? null : testClient(t, uri).db();
      await database?.command({ profile: 2 });
      reads.resetCalls();
      lookUps.resetCalls();
      for (let n = 1; n <= CHANGES; n++) {
        await put(n);
        await all((copy) => copy.isUpToDate && copy.rows.get('"a"')?.includes(`"price":${n}`) === true);
      }
      await database?.command({ profile: 0 });
      const isAggregate = { 'command.aggregate': { $exists: true } };
      const aggregates = await database?.collection('system.profile').countDocuments(isAggregate);
      const counts = [reads.callCount(), lookUps.callCount(), aggregates ?? 0];
      t.diagnostic(`${counts.join()} reads, look-ups and aggregates for ${CHANGES} changes`);
      assert.ok(counts.every((count) => count <= MOST));
      isOver = true;
      await put(CHANGES + 1);
      await Promise.all(done);
    },
  );

for (const store of ['sqlite', 'mongodb'] as const)
  test(
    `followers of ${store} cause one read of each row that comes into their scope`,
    { timeout: 60_000 },
    async (t) => {
      const acme = { name: 'acme', where: { items: { category: 'acme' } } };
      const server = await keyedServer(t, store, [{ name: 'other' }], []);
      if (!server) return;
      await keepImages(t, server.mongo, 'items');
      const changes = feedOf(server.store.items) as ChangeFeed & Required<Pick<ChangeFeed, 'within'>>;
      const within = changes.within.bind(changes);
      let rows = 0;
      const counted = (log: ScopeLog): ScopeLog => {
        const lookUp = log.lookUp.bind(log);
        t.mock.method(log, 'lookUp', async (...call: Parameters<typeof lookUp>) => {
          const found = await lookUp(...call);
          rows += found.batch?.rows ?? 0;
          return found;
        });
        return log;
      };
      t.mock.method(changes, 'within', (...call: Parameters<typeof within>) => counted(within(...call)));
      assert.ok(await server.rewrite([acme])); // from now on its scope has a log that is counted
      const put = (_id: string, category: string) =>
        server.store.items.insert([BSON.serialize({ _id, category, price: 1 })], 'replace');
      const copies = Array.from({ length: 10 }, () => new Copy(false, bearer('acme')));
      let isOver = false;
      const done = copies.map((copy) =>
        copy.read(`${server.url}/items/changes?follow=true`, { until: () => isOver }),
      );
      const all = (holds: (copy: Copy) => boolean) =>
        until('all have it', () => Promise.resolve(copies.every(holds)));
      const come = async (_id: string) => {
        await put(_id, 'acme');
        await all((copy) => copy.isUpToDate && copy.rows.has(`"${_id}"`));
      };
      await all((copy) => copy.isUpToDate);
      await come('first');
      rows = 0;
      for (let n = 0; n < CHANGES; n++) await come(`row ${n}`);
      t.diagnostic(`${rows} rows were read of ${CHANGES} that came`);
      assert.equal(rows, CHANGES);
      isOver = true;
      await put('last', 'acme');
      await Promise.all(done);
    },
  );

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON } from '../../../src/store/bson.ts';
import { Copy } from '../../support/copy.ts';
import { deferred } from '../../support/raw.ts';
import { testServer } from '../../support/server.ts';

const FOLLOWERS = 100;
const CHANGES = 3;

for (const store of ['sqlite', 'mongodb'] as const)
  test(
    `a hundred followers of ${store} cause few look-ups of a row that changed, and all get it`,
    { timeout: 60_000 },
    async (t) => {
      const server = await testServer(t, store, 'uws', { RATE_LIMIT: 'off', STREAM_LIMIT: '200' });
      if (!server) return;
      const { changes } = server.store.items;
      if (!changes) {
        t.skip('this store has no changes');
        return;
      }
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

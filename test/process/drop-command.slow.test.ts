import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BSON } from '../../src/store/values/bson.ts';
import { serve, shopOn } from '../support/import/shop.ts';
import { sluice } from '../support/process/commands.ts';
import type { StoreName } from '../support/process/server.ts';
import { until } from '../support/store/changes.ts';
import { startFill } from '../support/store/filling.ts';
import { NEVER } from '../support/store/reading.ts';
import { openFor } from '../support/store/sqlite/sqlite.ts';
import { temporaryFolder } from '../support/directory.ts';

const CSV = 'id,status,total\n1,new,5\n2,paid,7\n3,new,9\n';

for (const name of ['sqlite', 'mongodb'] satisfies StoreName[])
  describe(`taking back, on ${name}`, () => {
    test('a resource is dropped with its rows once that is confirmed, and a server beside answers 404', async (t) => {
      const shop = await shopOn(t, name);
      if (!shop) return;
      const run = (...args: string[]) => sluice(args, shop.environment);
      const file = await shop.file('orders.csv', CSV);
      assert.equal((await run('import', file, '--index', 'status,total')).code, 0);
      const server = await serve(t, shop, 'orders');
      assert.equal((await server.get('/orders')).status, 200);
      const refused = await run('drop', 'orders');
      assert.equal(refused.code, 2);
      assert.match(
        refused.said,
        /^sluice: drop removes orders with (about )?3 rows and 1 index from .*: confirm it with --yes$/m,
      );
      assert.equal((await server.get('/orders')).status, 200);
      const dropped = await run('drop', 'orders', '--yes');
      assert.equal(dropped.code, 0, dropped.said);
      assert.match(dropped.said, /^dropped orders with (about )?3 rows and 1 index from /);
      const seen = new Set<number>();
      await until('the resource is 404', async () => {
        const { status } = await server.get('/orders');
        seen.add(status);
        return status === 404;
      });
      assert.ok(!seen.has(500), [...seen].join());
      const again = await run('drop', 'orders', '--yes');
      assert.deepEqual(
        [again.code, again.said.includes('there is no resource "orders": sluice init lists them')],
        [2, true],
      );
      const anew = await run('import', file);
      assert.match(anew.said, /3 rows read, 3 written/);
    });

    test('a resource gets another name, and keeps its rows, indexes and history', async (t) => {
      const shop = await shopOn(t, name);
      if (!shop) return;
      const run = (...args: string[]) => sluice(args, shop.environment);
      await run('import', await shop.file('orders.csv', CSV), '--index', 'status,total');
      await run('import', await shop.file('taken.csv', CSV));
      for (const [args, message] of [
        [['orders', 'taken', '--yes'], /there is a resource "taken" already/],
        [['orders', 'livez', '--yes'], /taken by a route of the server; choose another name/],
        [['nowhere', 'old', '--yes'], /there is no resource "nowhere"/],
        [['orders'], /rename takes a resource and its new name/],
        [['orders', 'old'], /rename makes \/old of \/orders with (about )?3 rows .*: confirm it with --yes/],
      ] as const) {
        const { code, said } = await run('rename', ...args);
        assert.deepEqual([code, message.test(said)], [2, true], said);
      }
      const renamed = await run('rename', 'orders', 'old', '--yes');
      assert.equal(renamed.code, 0, renamed.said);
      const server = await serve(t, shop, 'old');
      assert.equal(
        await (await server.get('/old/stream?status=new&sort=total_desc')).text(),
        '{"id":3,"status":"new","total":9}\n{"id":1,"status":"new","total":5}\n',
      );
      assert.equal((await server.get('/orders')).status, 404);
      if (name === 'sqlite') assert.match((await run('check')).stdout, /is whole/);
    });

    test('an index is dropped, after what it answers was said, and can be added again', async (t) => {
      const shop = await shopOn(t, name);
      if (!shop) return;
      const run = (...args: string[]) => sluice(args, shop.environment);
      await run('import', await shop.file('orders.csv', CSV), '--index', 'total', '--index', 'status,total');
      const refused = await run('index', 'orders', '--drop', 'status,total');
      assert.equal(refused.code, 2);
      assert.match(
        refused.said,
        /--drop removes the index status_1_total_1__id_1 of orders \((about )?3 rows\); GET \/orders then no longer answers: .*status with sort=total_asc.*\. Confirm it with --yes/,
      );
      const dropped = await run('index', 'orders', '--drop', 'status,total', '--yes');
      assert.equal(dropped.code, 0, dropped.said);
      const missing = await run('index', 'orders', '--drop', 'status,total', '--yes');
      assert.match(missing.said, /orders has no index of status,total and the key; it has: total_1__id_1/);
      if (name === 'sqlite') assert.match((await run('check')).stdout, /is whole/);
      const server = await serve(t, shop, 'orders');
      assert.equal((await server.get('/orders?status=new&sort=total_asc')).status, 400);
      assert.equal((await server.get('/orders?sort=total_asc')).status, 200);
      assert.equal((await run('index', 'orders', 'status,total')).code, 0);
      if (name === 'sqlite') assert.match((await run('check')).stdout, /is whole/);
      assert.equal((await run('index', 'orders', 'total', '--yes')).code, 2);
    });
  });

test('what an import loads is not dropped or renamed, and neither are items of the embedded store', async (t) => {
  const store = await openFor(t, await temporaryFolder(t));
  const rows = await store.open({ name: 'orders', collection: 'orders', indexes: [] });
  await rows.insert([BSON.serialize({ _id: 1 })], 'fail');
  const fill = startFill(rows, { replaces: true });
  await fill.asks();
  for (const work of [() => rows.drop(), () => rows.rename('old'), () => rows.removeIndex(['a'])])
    await assert.rejects(work, /Another import \(process \d+\) fills orders/);
  fill.end();
  await fill.done;
  const { identity } = await rows.describe(NEVER);
  await rows.drop();
  const plan = { sort: '_id', direction: 1 } as const;
  const size = { rows: 1, bytes: 1 };
  await assert.rejects(rows.read(plan, {}, size, NEVER), { code: 'store-unfit' });
  await assert.rejects(rows.read({ ...plan, ...(identity !== undefined && { identity }) }, {}, size, NEVER), {
    code: 'collection-replaced',
  });
  const { code, said } = await sluice(['drop', 'items'], { DATA_DIR: await temporaryFolder(t) });
  assert.deepEqual([code, said.includes('the server declares the resource items')], [2, true], said);
});

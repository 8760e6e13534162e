import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numberRange } from '../../support/store/number-range.ts';
import { SyntheticItems } from '../../../src/import/synthetic.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { Slots } from '../../../src/store/turns/slots.ts';
import type { Plan } from '../../../src/store/store.ts';
import { jsonOf, problemOf, type Page } from '../../support/answers.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { ownMongod, testMongo } from '../../support/store/mongo/mongod.ts';
import { openStore } from '../../support/store/mongo/mongo.ts';
import { openDirectory } from '../../support/store/sqlite/sqlite.ts';
import { startWireProxy } from '../../support/store/mongo/wire-proxy.ts';
import { NEVER } from '../../support/store/reading.ts';
import { onServers } from '../../support/process/each-server.ts';

const BY_PRICE: Plan = { sort: 'price', direction: 1, range: numberRange('250', '1000') };
/** More rows than MongoDB counts one by one when it need not be exact. */
const MANY = 24_000;

function manyRows(count: number): Uint8Array[] {
  const items = new SyntheticItems(1);
  return Array.from({ length: count }, () => items.next());
}

function inRange(rows: readonly Uint8Array[]): number {
  return rows.filter((row) => (BSON.deserialize(row) as { price: number }).price >= 250).length;
}

test('the embedded store counts in bounded steps, and returns a lower bound when its time is up', async (t) => {
  let now = 0;
  let step = 0;
  const slots = new Slots();
  const directory = await temporaryFolder(t);
  const store = await openDirectory(directory, {
    slots,
    transactionRows: 20_000,
    now: () => (now += step),
  });
  t.after(() => store.close());
  const rows = manyRows(41_000);
  await store.items.insert(rows, 'fail');
  const plan: Plan = { sort: 'price', direction: 1, range: numberRange('0', undefined) }; // all rows, by the index: more than one step
  const matching = rows.length;
  assert.deepEqual(await store.items.count(plan, 'exact', NEVER), { rows: matching, is: 'exact' });

  step = 1500; // the clock advances by this much at each reading
  assert.deepEqual(await store.items.count(plan, 'exact', NEVER), { rows: matching, is: 'exact' });
  step = 3000;
  assert.deepEqual(await store.items.count(plan, 'exact', NEVER), { rows: 40_000, is: 'atLeast' });
  step = 25;
  assert.deepEqual(await store.items.count(plan, 'estimated', NEVER), { rows: 40_000, is: 'atLeast' });
  const all: Plan = { sort: 'price', direction: 1 };
  assert.deepEqual(await store.items.count(all, 'exact', NEVER), { rows: rows.length, is: 'exact' });
});

test('MongoDB counts up to 10,001 rows of a filtered set, and no more when an exact count times out', async (t) => {
  const set = await ownMongod(t, { arguments: ['--setParameter', 'enableTestCommands=1'] });
  const member = set?.members[0];
  if (!set || !member) return;
  const { store } = await openStore(t, set.uri);
  const rows = manyRows(MANY);
  await store.items.insert(rows, 'fail');
  const matching = inRange(rows);

  assert.deepEqual(await store.items.count(BY_PRICE, 'exact', NEVER), { rows: matching, is: 'exact' });
  const bounded = { rows: 10_001, is: 'atLeast' } as const;
  assert.deepEqual(await store.items.count(BY_PRICE, 'estimated', NEVER), bounded);
  const all: Plan = { sort: '_id', direction: 1 };
  assert.deepEqual(await store.items.count(all, 'estimated', NEVER), { rows: MANY, is: 'estimated' });
  assert.deepEqual(await store.items.count(all, 'exact', NEVER), { rows: MANY, is: 'exact' });

  for (const [plan, expected] of [
    [BY_PRICE, bounded],
    [all, { rows: MANY, is: 'estimated' }],
  ] as const) {
    await member.admin((client) =>
      client.db('admin').command({
        configureFailPoint: 'failCommand',
        mode: { times: 1 },
        data: { failCommands: ['count'], errorCode: 50 },
      }),
    );
    assert.deepEqual(await store.items.count(plan, 'exact', NEVER), expected);
  }
});

test('an exact count of all rows of MongoDB counts entries of an index, and takes none from the metadata', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const proxy = await startWireProxy(t, uri);
  const { store } = await openStore(t, proxy.uri);
  await store.items.insert(manyRows(10), 'fail');
  const hints: (string | undefined)[] = [];
  proxy.onCommand = (command) => {
    if (command.count !== undefined) hints.push(JSON.stringify(command.hint));
  };
  const all: Plan = { sort: '_id', direction: 1 };
  assert.deepEqual(await store.items.count(all, 'exact', NEVER), { rows: 10, is: 'exact' });
  await store.items.count(all, 'estimated', NEVER);
  assert.deepEqual(hints, ['{"_id":1}', undefined]);
});

onServers('stores', (test) => {
  test('count adds a total and its accuracy to pages of every style, and pages without count have no total', async (server) => {
    const categories = ['red', 'red', 'blue'];
    await server.insert(categories.map((category, n) => ({ _id: `i${n}`, category, price: n })));
    const pageOf = async (query: string) => ((await jsonOf(server.get(`/items?${query}`))) as Page).page;
    for (const query of ['', 'count=none&']) assert.ok(!('total' in (await pageOf(`${query}limit=1`))));
    for (const position of ['', '&offset=2', '&page=2', '&sort=price_desc'])
      for (const count of ['exact', 'estimated']) {
        const page = await pageOf(`category=red&limit=1&count=${count}${position}`);
        assert.deepEqual([page.total, page.totalIs], [2, 'exact']);
      }
    const page = await pageOf('limit=1&count=exact');
    assert.deepEqual([page.total, page.totalIs], [3, 'exact']);
    const next = await server.get(`/items?limit=1&count=exact&cursor=${page.nextCursor}`);
    assert.match(next.headers.get('link') ?? '', /<\/items\?limit=1&count=exact&cursor=[^>]+>; rel="next"/);
    assert.equal(((await jsonOf(next)) as Page).page.total, 3);

    for (const count of ['', 'all', 'exact,estimated', 'EXACT']) {
      const { status, code, parameter } = await problemOf(server.get(`/items?count=${count}`));
      assert.deepEqual([status, code, parameter], [400, 'invalid-parameter', 'count']);
    }
    for (const [query, code] of [
      ['count=exact', 'unknown-parameter'],
      [`cursor=${page.nextCursor}`, 'cursor-mismatch'], // a cursor of items
    ] as const)
      assert.equal((await problemOf(server.get(`/api/users?${query}`))).code, code);
  });
});

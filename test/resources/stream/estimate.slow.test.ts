import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storeUnavailable } from '../../../src/errors.ts';
import { around } from '../../../src/store/around.ts';
import type { Plan, Collection, Store } from '../../../src/store/store.ts';
import { estimator } from '../../../src/resources/stream/estimate.ts';
import { testMongo } from '../../support/store/mongo/mongod.ts';
import { NEVER } from '../../support/store/reading.ts';
import { serverOn, testServer, type EngineName, type StoreName } from '../../support/process/server.ts';

const COMBINATIONS: [StoreName, EngineName][] = [
  ['sqlite', 'uws'],
  ['sqlite', 'node'],
  ['mongodb', 'uws'],
];

/** More than a first batch holds. */
const rows = Array.from({ length: 1_500 }, (_, n) => ({
  _id: `r${String(n).padStart(5, '0')}`,
  category: n < 3 ? 'few' : 'many',
  price: n,
  text: 'x'.repeat(2_000),
}));

for (const [store, engine] of COMBINATIONS)
  test(`${store} behind ${engine}: a stream says about how many rows it has where the store knows without counting`, async (t) => {
    const server = await testServer(t, store, engine, { CORS_ORIGIN: '*' });
    if (!server) return;
    await server.insert(rows);
    const estimateOf = async (query: string, method = 'GET') => {
      const response = await fetch(`${server.url}/items/stream?${query}`, {
        method,
        headers: { origin: 'https://a.example' },
      });
      await response.arrayBuffer();
      assert.equal(response.status, 200);
      assert.match(response.headers.get('access-control-expose-headers') ?? '', /Estimated-Rows/);
      return response.headers.get('estimated-rows');
    };
    assert.equal(await estimateOf(''), '1500');
    assert.equal(await estimateOf('', 'HEAD'), '1500');
    assert.equal(await estimateOf('sort=price_desc&format=csv'), '1500');
    assert.equal(await estimateOf('limit=1400'), '1400');
    assert.equal(await estimateOf('limit=7'), '7');
    assert.equal(await estimateOf('category=few'), '3', 'all of them are in the first batch');
    assert.equal(await estimateOf('category=none'), '0');
    assert.equal(await estimateOf('category=many'), null);
    assert.equal(await estimateOf('min_price=10'), null);
    assert.equal(await estimateOf('after=r00001'), null);
    assert.equal(await estimateOf('after=r01490'), '9');
  });

test('an estimate is asked for once in five seconds, and a stream does without one that fails or takes long', async () => {
  const hanging: Collection['count'] = () => new Promise(() => undefined);
  let now = 0;
  let calls = 0;
  let answer: Collection['count'] = () => Promise.resolve({ rows: calls, is: 'estimated' });
  const count: Collection['count'] = (...call) => (calls++, answer(...call));
  let hasWaited: () => void = () => assert.fail('no request waits');
  const begin = estimator(
    { count },
    {
      now: () => now,
      patience: () => NEVER,
      grace: () => new Promise((resolve) => (hasWaited = () => resolve(null))),
    },
  );
  const estimate = (plan: Plan) => begin(plan)();
  const whole = { sort: 'price', direction: -1 } as const;
  assert.equal(await estimate({ ...whole, equals: [{ path: 'a', value: 1 }] }), null);
  assert.equal(calls, 0);
  assert.deepEqual([await estimate(whole), await estimate(whole)], [1, 1]);
  now += 5_000;
  assert.deepEqual([await estimate(whole), await estimate(whole)], [2, 2]);
  now += 5_000;
  answer = () => Promise.reject(storeUnavailable(new Error('x')));
  assert.equal(await estimate(whole), null);
  answer = () => Promise.reject(new TypeError('a mistake'));
  assert.equal(await estimate(whole), null, 'the reads report what is wrong');
  answer = hanging;
  const before = calls;
  const late = estimate(whole);
  hasWaited();
  assert.equal(await late, null);
  const next = estimate(whole);
  hasWaited();
  assert.equal(await next, null);
  assert.equal(calls, before + 1, 'streams that begin meanwhile share one count');
});

for (const store of ['sqlite', 'mongodb'] satisfies StoreName[])
  test(`${store}: a stream begins also when its estimate never comes`, async (t) => {
    const uri = store === 'mongodb' ? await testMongo(t) : '';
    if (uri === null) return;
    let counts = 0;
    const count: Collection['count'] = () => {
      counts++;
      return new Promise(() => undefined); // not even when it is given up
    };
    const tapStore = (opened: Store): Store => tapped(opened, count);
    const server = await serverOn(t, { MONGODB_URI: uri }, { tapStore });
    await server.insert(rows);
    const response = await server.get('/items/stream');
    assert.equal(counts, 1);
    assert.equal(response.headers.get('estimated-rows'), null);
    assert.equal((await response.text()).split('\n').length - 1, rows.length);
  });

/** The same store, with another count of items. */
function tapped(store: Store, count: Collection['count']): Store {
  return around(store, { items: around(store.items, { count }) });
}

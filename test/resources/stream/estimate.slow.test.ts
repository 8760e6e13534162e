import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storeUnavailable } from '../../../src/base/errors.ts';
import { aroundItems } from '../../support/store/with-items.ts';
import type { Collection, Plan, Store } from '../../../src/store/store.ts';
import { estimate as estimateOf } from '../../../src/resources/stream/estimate.ts';
import { linesOf } from '../../support/answers.ts';
import { onCombinations } from '../../support/process/each-server.ts';
import { serverOn, testServer } from '../../support/process/server.ts';

/** More than a first batch holds. */
const rows = Array.from({ length: 1_500 }, (_, n) => ({
  _id: `r${String(n).padStart(5, '0')}`,
  category: n < 3 ? 'few' : 'many',
  price: n,
  text: 'x'.repeat(2_000),
}));

onCombinations(
  (t, { store, engine }) => testServer(t, store, engine, { CORS_ORIGIN: '*' }),
  (test) => {
    test('a stream says about how many rows it has where the store knows without counting', async (server) => {
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
  },
);

test('an estimate is asked for once in five seconds, and again when it failed', async (t) => {
  let now = 0;
  let calls = 0;
  t.mock.method(performance, 'now', () => now);
  let answer: Collection['count'] = () => Promise.resolve({ rows: calls, is: 'estimated' });
  const rows: Pick<Collection, 'count'> = { count: (...call) => (calls++, answer(...call)) };
  const estimate = (plan: Plan) => estimateOf({ rows }, plan);
  const whole = { sort: 'price', direction: -1 } as const;
  assert.equal(await estimate({ ...whole, equals: [{ path: 'a', value: 1 }] }), null);
  assert.equal(calls, 0);
  assert.deepEqual([await estimate(whole), await estimate(whole)], [1, 1]);
  now += 5_000;
  assert.deepEqual([await estimate(whole), await estimate(whole)], [2, 2]);
  now += 5_000;
  for (const error of [storeUnavailable(new Error('x')), new TypeError('a mistake')]) {
    answer = () => Promise.reject(error);
    assert.equal(await estimate(whole), null, 'the reads report what is wrong');
  }
  answer = () => new Promise(() => undefined);
  assert.equal(estimate(whole), estimate(whole), 'streams that begin meanwhile share one count');
  assert.equal(calls, 5);
});

/** How often a count of items was asked for that never comes, not even when it is given up. */
let counts = 0;
const tapStore = (store: Store): Store => {
  const count = () => (counts++, new Promise<never>(() => undefined));
  return aroundItems(store, () => ({ count }));
};

test('a stream begins also when its estimate never comes', async (t) => {
  const server = await serverOn(t, {}, { tapStore });
  await server.insert(rows);
  const response = await server.get('/items/stream');
  assert.equal(counts, 1);
  assert.equal(response.headers.get('estimated-rows'), null);
  assert.equal((await linesOf(response)).length, rows.length);
});

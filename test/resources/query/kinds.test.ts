import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kindsAt } from '../../../src/resources/query/kind-table.ts';
import { Decimal128, Double, Int32, type Document } from '../../../src/store/values/bson.ts';
import { idsIn, jsonOf, linesOf, problemOf } from '../../support/answers.ts';
import type { Collection } from '../../../src/store/store.ts';
import { NEVER } from '../../support/store/reading.ts';
import { resourceServer } from '../../support/resources/resources.ts';
import type { TestServer } from '../../support/process/server.ts';
import { onStores, sharedByStore } from '../../support/process/each-server.ts';

const ROWS: readonly Document[] = Array.from({ length: 40 }, (_, n) => ({
  _id: new Int32(n),
  t: new Date(Date.UTC(2026, 0, n + 1)),
  ref: n % 2 === 0 ? new Int32(n) : String(n),
  name: String(n),
  price: n % 2 === 0 ? new Double(0.1) : Decimal128.fromString('0.1'),
  cost: new Double(n + 0.1),
}));
const INDEXES = [['t'], ['ref'], ['name'], ['price'], ['cost', 't']];

async function idsOf(server: TestServer, query: string) {
  return idsIn(await linesOf(server.get(`/m/stream?${query}`)));
}

const refusalOf = (server: TestServer, query: string) => problemOf(server.get(`/m?${query}`));

onStores(
  sharedByStore((t, store) => resourceServer(t, store, { name: 'm', rows: ROWS, indexes: INDEXES })),
  (test) => {
    test('a text is read as the kind of its field, and a prefix asks for another', async (server) => {
      assert.deepEqual(await idsOf(server, 't=2026-01-03'), [2]);
      assert.deepEqual(await idsOf(server, 'name=7'), [7]);
      assert.deepEqual(await idsOf(server, 'name=int:7'), []);
      assert.deepEqual(await idsOf(server, 'id=7'), [7]);
      for (const text of ['2026-13-01', 'abc', '7', 'true', '']) {
        for (const name of ['t', 't.gte', 't.lt']) {
          const { code, detail, parameter } = await refusalOf(server, `${name}=${text}`);
          assert.deepEqual([code, parameter], ['invalid-parameter', 't'], `${name}=${text}`);
          assert.match(detail, /date; got .*str:/);
        }
        assert.deepEqual(await idsOf(server, `t=str:${text}`), []);
      }
    });

    test('a field of several kinds needs a prefix where a text can be of several', async (server) => {
      for (const name of ['ref', 'ref.gte', 'ref.lt']) {
        const { code, detail } = await refusalOf(server, `${name}=8`);
        assert.equal(code, 'ambiguous-value');
        assert.match(detail, /int:8 or str:8/);
      }
      assert.deepEqual(await idsOf(server, 'ref=int:8'), [8]);
      assert.deepEqual(await idsOf(server, 'ref=str:9'), [9]);
      assert.deepEqual(await idsOf(server, 'ref.gte=int:36'), [36, 38]);
      assert.deepEqual(await idsOf(server, 'ref.gte=x'), []);
    });

    test('a number is every number that is shown so', async (server) => {
      for (const [query, rows] of [
        ['price=0.1', 40],
        ['price=0.1&sort=price_desc', 40],
        ['price.gte=0.1', 40],
        ['price.lte=0.1', 40],
        ['price.gt=0.1', 0],
        ['price.lt=0.1', 0],
        ['price=num:0.1', 20],
        ['price=dec:0.1', 20],
        ['price=num:0.1&sort=id_desc', 20],
        ['cost=3.1&t=2026-01-04', 1],
        ['cost=3.1&sort=t_desc', 1],
      ] as const)
        assert.equal((await idsOf(server, query)).length, rows, query);
      assert.match((await refusalOf(server, 'price=0.1&sort=id_desc')).detail, /num:0.1 or dec:0.1/);
    });

    test('/openapi.json gives the kinds of the parameters', async (server) => {
      const describedAs = async (name: string) => {
        const { paths } = (await jsonOf(server.get('/openapi.json'))) as {
          paths: Record<string, { get: { parameters: { name: string; description: string }[] } }>;
        };
        return paths['/m']?.get.parameters.find((one) => one.name === name)?.description ?? '';
      };
      await jsonOf(server.get('/resources')); // it waits for a slow store, and the document for a second only
      assert.match(await describedAs('t'), /this value of t\. Its kind is date\. A prefix/);
      assert.match(await describedAs('price.gte'), /Its kind is number\./);
      assert.match(await describedAs('ref'), /Its kind is (number or string|string or number)\./);
    });

    test('GET /resources gives the kinds, and queries do not ask for them again', async (server) => {
      const { resources } = (await jsonOf(server.get('/resources'))) as {
        resources: { name: string; kinds: { field: string; kinds: string[] }[] }[];
      };
      const kinds = resources.find(({ name }) => name === 'm')?.kinds ?? [];
      assert.deepEqual(
        new Map(kinds.map((one) => [one.field, [...one.kinds].sort().join()])),
        new Map([
          ['id', 'number'],
          ['t', 'date'],
          ['ref', 'number,string'],
          ['name', 'string'],
          ['price', 'number'],
          ['cost', 'number'],
        ]),
      );
      const looks = async () => {
        const metrics = await (await server.get('/metrics')).text();
        return Number(/sluice_store_\w*_count\{[^}]*values[^}]*\} (\d+)/.exec(metrics)?.[1]);
      };
      const before = await looks();
      for (let n = 0; n < 40; n++) await idsOf(server, `name=${n}`);
      const asked = (await looks()) - before;
      assert.ok(asked < 40, `${asked} looks for 40 texts that can be of two kinds`);
    });
  },
);

onStores(
  (t, store) => resourceServer(t, store, { name: 'm', rows: [{ _id: 'a' }], indexes: [['v']] }),
  (test) => {
    test('a field that had no values is looked at again', async (server) => {
      for (const text of ['5', 'x']) assert.deepEqual(await idsOf(server, `v=${text}`), []);
      assert.deepEqual(await idsOf(server, 'v=null:'), ['a']);
    });
  },
);

test('a look at a field that takes too long is 503 for all who wait for it', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const hangs: Collection['read'] = (_plan, _from, _size, signal) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  const looked = { indexes: [] };
  const describe = () => Promise.resolve(looked);
  const resource = { rows: { describe, read: hangs } as unknown as Collection };
  const waiting: Promise<unknown>[] = [];
  for (let n = 0; n < 2; n++) {
    waiting.push(assert.rejects(kindsAt(resource, 'a', NEVER), { code: 'store-unavailable' }));
    await new Promise((resolve) => setImmediate(resolve));
    t.mock.timers.tick(5_000);
  }
  await Promise.all(waiting);
});

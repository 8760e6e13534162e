import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Export } from '../../src/exports/export.ts';
import { jsonOf, type Page } from '../support/answers.ts';
import { awaited, fileOf, order } from '../support/exports/exports.ts';
import { bearer, keyedServer, type KeyGiven, type Rows } from '../support/access/keyed.ts';
import type { StoreName } from '../support/process/server.ts';

/** More rows than a store counts before it estimates, and more of others. */
const OWN = 10_600;
const FOREIGN = 3_000;
/** The first row with a field that no sample of columns is sure to meet. */
const LATE = 10_000;

/** Hidden values in every kind of place: below documents and arrays, in names with dots, in rare fields, beside misfits. */
const rowOf = (n: number, tenant: string) => ({
  _id: `r${String(n).padStart(5, '0')}${tenant === 'acme' ? '' : '-FOREIGN'}`,
  tenant,
  total: n,
  deep: { secret: 'HIDDEN', shown: n },
  'deep.secret': 'HIDDEN',
  list: [{ secret: 'HIDDEN', n }, [{ secret: 'HIDDEN' }], 'x'],
  mixed: n % 2 ? n : { secret: 'HIDDEN', a: n },
  ...(n > LATE && n < OWN && { late: 'HIDDEN', [`rare${n % 7}`]: { secret: 'HIDDEN', a: 1 } }),
  ...(tenant !== 'acme' && { [`FOREIGN${n % 50}`]: 1 }),
});
const ORDERS: Rows = {
  name: 'orders',
  rows: Array.from({ length: OWN + FOREIGN }, (_, n) => rowOf(n, n < OWN ? 'acme' : 'other')),
  indexes: [['tenant'], ['tenant', 'total'], ['total']],
};
const ACME: KeyGiven = {
  name: 'acme',
  where: { orders: { tenant: 'acme' } },
  hide: {
    orders: [
      'deep.secret',
      'list.secret',
      'mixed.secret',
      'late',
      ...[0, 1, 2, 3, 4, 5, 6].map((n) => `rare${n}.secret`),
    ],
  },
};

const FORMS = [
  'format=ndjson',
  'format=json',
  'format=csv',
  'format=csv&safe=true&sort=total_desc',
  'format=csv&fields=late,mixed,deep,list,rare1',
  'format=arrow',
  'format=arrow&fields=late,mixed,rare1',
  'format=arrow&columns=id:text,total:integer',
  'format=arrow&columns=id:text,mixed:integer,late:text,list:integer,deep:text',
  'format=arrow&columns=id:text,mixed:json,rare3:json,list:json,deep:json',
];

for (const store of ['sqlite', 'mongodb'] satisfies StoreName[])
  test(`${store}: forms and figures of a large part`, async (t) => {
    const server = await keyedServer(t, store, [ACME, { name: 'all' }], [ORDERS]);
    if (!server) return;

    await t.test('no format contains a hidden value or a foreign row, for any columns', async () => {
      for (const form of FORMS) {
        const read = async (name: string) => {
          const answer = await server.as(name, `/orders/stream?${form}`);
          assert.equal(answer.status, 200, form);
          return Buffer.from(await answer.arrayBuffer()).toString('latin1');
        };
        const text = await read('acme');
        assert.doesNotMatch(text, /HIDDEN|FOREIGN/, form);
        assert.ok(text.includes('r10599'), `${form}: has the last row`);
        assert.match(await read('all'), /HIDDEN|FOREIGN/, 'a key without limits has them');
      }
    });

    await t.test('no figure counts more than the rows of the key', async () => {
      for (const mode of ['estimated', 'exact']) {
        const { page } = (await jsonOf(server.as('acme', `/orders?limit=1&count=${mode}`))) as Page;
        assert.ok((page.total ?? 0) <= OWN && (page.total ?? 0) > 10_000, `${mode}: ${page.total}`);
        assert.notEqual(page.totalIs, 'estimated', mode);
      }
      const stream = await server.as('acme', '/orders/stream');
      await stream.body?.cancel();
      assert.ok(Number(stream.headers.get('estimated-rows')) <= OWN);
    });

    await t.test('an export counts and contains only the rows of the key', async () => {
      const { id } = await order(server.url, { resource: 'orders', format: 'arrow' }, bearer('acme'));
      const isComplete = (one: Export) => {
        assert.ok((one.progress.estimatedRows ?? 0) <= OWN, JSON.stringify(one));
        return one.state === 'complete';
      };
      const done = await awaited(server.url, id, isComplete, bearer('acme'));
      assert.equal(done.file?.rows, OWN);
      const text = (await fileOf(server.url, done, bearer('acme'))).toString('latin1');
      assert.doesNotMatch(text, /HIDDEN|FOREIGN/);
    });

    await t.test('a refusal names no index and no value of the part', async () => {
      for (const path of [
        '/orders?mixed=1',
        '/orders?sort=mixed_asc',
        '/orders?total=x&sort=deep.shown_asc',
        '/orders/values?field=list',
      ]) {
        const refused = await server.as('acme', path);
        assert.equal(refused.status, 400, path);
        assert.doesNotMatch(
          await refused.text(),
          /createIndex|sluice index|tenant|acme|HIDDEN|FOREIGN/,
          path,
        );
      }
    });
  });

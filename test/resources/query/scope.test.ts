import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { rightsOf, scopeOf, type Scope } from '../../../src/access/rights.ts';
import { encodeCursor } from '../../../src/resources/token/cursor.ts';
import { openForm } from '../../../src/resources/query/form.ts';
import { scopedResource } from '../../../src/resources/query/scope.ts';
import { readPlan } from '../../../src/resources/query/read-plan.ts';
import { Decimal128, Double } from '../../../src/store/values/bson.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { ReadTurns } from '../../../src/store/turns/read-turns.ts';
import { streamReader, type StreamedRows } from '../../../src/store/turns/readers.ts';
import { itemsOf } from '../../support/resources/items-resource.ts';
import { NEVER } from '../../support/store/reading.ts';
import { testSqlite } from '../../support/store/sqlite/sqlite.ts';

/** The most that the part of a key may cost once a page of it was served. Bytes. */
const MOST_BYTES = 4096;
const PARTS = 5_000;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heap(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

function scopeOfItems(category: string): Scope {
  return scopeOf(rightsOf({ where: { items: { category } } }), 'items') ?? assert.fail();
}

test(`a part of a resource costs at most ${MOST_BYTES} bytes, and none when its key is gone`, async (t) => {
  const { store } = await testSqlite(t);
  const streamsOf = (rows: StreamedRows) => streamReader(rows, new ReadTurns(), { retryMs: 0 });
  const { resource } = itemsOf(store, streamsOf);
  const open = (scope: Scope) => scopedResource(resource, scope);
  open(scopeOfItems('first'));
  let scopes = Array.from({ length: PARTS }, (_, n) => scopeOfItems(`category ${n}`));
  const before = heap();
  let kept = scopes.map(open);
  const each = (heap() - before) / kept.length;
  assert.ok(each <= MOST_BYTES, `${each} bytes`);
  scopes = [];
  kept = [];
  const left = (heap() - before) / PARTS;
  assert.ok(left < each / 10, `${left} of ${each} bytes are left, of ${kept.length + scopes.length} parts`);
});

test('the server creates one part for the same rights, and its plans and cursors do not contain its values', async (t) => {
  const { store } = await testSqlite(t);
  const { resource } = itemsOf(store);
  const scopes = ['a', 'b'].map(scopeOfItems);
  const query = new Map([['sort', 'price_asc']]);
  const cursors = await Promise.all(
    scopes.map(async (scope) => {
      const part = scopedResource(resource, scope);
      assert.equal(scopedResource(resource, scope), part);
      const plan = await readPlan(query, part, NEVER);
      assert.equal(plan.equals, undefined);
      assert.equal(plan.index?.name, 'category_1_price_1__id_1');
      return encodeCursor('items', plan, makeBookmark({ price: 1, _id: 1 }));
    }),
  );
  assert.equal(cursors[0], cursors[1]);
});

test('the value of a declared number in where needs no prefix, and of a declared decimal neither', async (t) => {
  const { store } = await testSqlite(t);
  const { resource } = itemsOf(store);
  const kinds = new Map([...resource.kinds, ['cost', 'decimal']] as const);
  const where = { price: '0.1', cost: '0.1', 'price.gross': 'num:0.1' };
  const scope = scopeOf(rightsOf({ where: { items: where } }), 'items') ?? assert.fail();
  const values = scopedResource({ ...resource, kinds }, scope).scope?.where.map(({ value }) => value);
  assert.deepEqual(values, [Decimal128.fromString('0.1'), new Double(0.1), new Double(0.1)]);
});

test('a part that no index serves is unfit, whatever is asked of it', async (t) => {
  const { store } = await testSqlite(t);
  const { resource } = itemsOf(store);
  const scope = scopeOf(rightsOf({ where: { items: { name: 'a' } } }), 'items') ?? assert.fail();
  const part = scopedResource(resource, scope);
  for (const query of [
    [],
    [['sort', 'price_asc']],
    [
      ['sort', 'id_desc'],
      ['category', 'a'],
    ],
  ])
    await assert.rejects(readPlan(new Map(query as [string, string][]), part, NEVER), {
      code: 'store-unfit',
      message: 'No index serves the rows that this key opens.',
    });
  await assert.rejects(part.rows.read({ sort: '_id', direction: 1 }, {}, { rows: 1, bytes: 1 }, NEVER), {
    code: 'store-unfit',
  });
});

test('a value that the part has is asked for in any type, and another one finds nothing', async (t) => {
  const { store } = await testSqlite(t);
  const { resource } = itemsOf(store);
  const scope = scopeOf(rightsOf({ where: { items: { price: 'num:0.5' } } }), 'items') ?? assert.fail();
  const part = scopedResource({ ...resource, form: openForm('items'), kinds: new Map() }, scope);
  for (const [text, isEmpty] of [
    ['0.5', undefined],
    ['dec:0.5', undefined],
    ['0.50000000000000000001', true],
    [`0.5${'0'.repeat(40)}1`, true],
    ['str:0.5', true],
  ] as const)
    assert.equal((await readPlan(new Map([['price', text]]), part, NEVER)).isEmpty, isEmpty, text);
});

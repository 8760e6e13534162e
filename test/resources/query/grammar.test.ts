import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '../../../src/base/errors.ts';
import type { Route } from '../../../src/http/route.ts';
import { openForm } from '../../../src/resources/query/form.ts';
import { isField, readGiven, readSort } from '../../../src/resources/query/grammar.ts';
import { isMisfit, readingsOf } from '../../../src/resources/query/kinds.ts';
import type { RouteOptions } from '../../../src/resources/route-docs.ts';
import { candidates } from '../../../src/resources/query/readings.ts';
import { resourceRoutes } from '../../../src/resources/resource-routes.ts';
import type { OwnedCollection } from '../../../src/store/store.ts';
import { itemsOf } from '../../support/resources/items-resource.ts';

const given = (...pairs: [string, string][]) => readGiven(pairs);
const refusedWith = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;

test('a last segment that names an operator is the operator, always', () => {
  const { equals, bounds } = given(
    ['limit', '5'],
    ['limit.eq', '6'],
    ['total.gte', '1'],
    ['total.lt', '9'],
    ['total.gte.eq', '7'],
    ['x.eq.eq', '8'],
    ['gte', '4'],
    ['customer.country', 'DE'],
  );
  assert.deepEqual(
    [...equals],
    [
      ['limit', '6'],
      ['total.gte', '7'],
      ['x.eq', '8'],
      ['gte', '4'],
      ['customer.country', 'DE'],
    ],
  );
  assert.deepEqual(
    [...bounds],
    [['total', { low: { text: '1', isInclusive: true }, high: { text: '9', isInclusive: false } }]],
  );
});

test('no parameter of a route asks for a field', () => {
  const { resource } = itemsOf({ items: {} as OwnedCollection, name: 'sqlite' });
  const open = { ...resource, form: openForm('x') };
  const routes = resourceRoutes({ resource: open }, {
    limits: { maxLimit: 1, maxOffset: 1 },
  } as RouteOptions);
  const names = Object.values(routes as Record<string, Route>).flatMap(({ query = [] }) =>
    query.map(({ name }) => name),
  );
  assert.ok(names.includes('field') && names.includes('n') && names.includes('follow'));
  assert.deepEqual(names.filter(isField), []);
});

test('id and _id mean the key in every name', () => {
  assert.deepEqual([...given(['id', '1']).equals], [['_id', '1']]);
  assert.deepEqual([...given(['id.gte', '1']).bounds.keys()], ['_id']);
  assert.deepEqual(readSort('id_desc'), { path: '_id', direction: -1 });
});

test('a field that is given twice is refused', () => {
  assert.throws(() => given(['a', '1'], ['a.eq', '2']), refusedWith('duplicate-parameter'));
  assert.throws(() => given(['_id', '1'], ['id', '2']), refusedWith('duplicate-parameter'));
  assert.throws(() => given(['a.gt', '1'], ['a.gte', '2']), refusedWith('conflicting-parameters'));
});

test('the last _asc or _desc of a sort is the direction', () => {
  assert.deepEqual(readSort('created_at_desc'), { path: 'created_at', direction: -1 });
  assert.deepEqual(readSort('price_asc_asc'), { path: 'price_asc', direction: 1 });
  assert.equal(readSort('price'), null);
  assert.equal(readSort('_asc'), null);
});

test('a text has every reading that it allows, and a prefix leaves one', () => {
  const spellings = (text: string) => {
    const read = readingsOf(text);
    return isMisfit(read) ? `${read.prefix} expects ${read.expected}` : read.map(({ spelling }) => spelling);
  };
  assert.deepEqual(spellings('42'), ['int:42', 'str:42']);
  assert.deepEqual(spellings('0.5'), ['num:0.5', 'str:0.5']);
  assert.deepEqual(spellings('0.1'), ['num:0.1', 'dec:0.1', 'str:0.1']);
  assert.deepEqual(spellings('655b0b800000000100000000'), [
    'oid:655b0b800000000100000000',
    'str:655b0b800000000100000000',
  ]);
  assert.deepEqual(spellings('2026-01-31'), ['date:2026-01-31', 'str:2026-01-31']);
  for (const text of [
    '2026-02-30',
    '2025-02-29T10:00:00Z',
    '2026-01-31T24:00:00Z',
    '2026-01-31T10:00:00+25:00',
  ])
    assert.deepEqual(spellings(text), [`str:${text}`], 'no other day');
  assert.equal(spellings('date:2026-02-30'), 'date expects a date and time as in 2026-01-31T12:00:00Z');
  assert.deepEqual(spellings('true'), ['bool:true', 'str:true']);
  assert.deepEqual(spellings('str:oid:1'), ['str:oid:1']);
  assert.deepEqual(spellings('null:'), ['null:']);
  assert.equal(spellings('null:x'), 'null expects nothing behind it');
  assert.equal(spellings('bool:1'), 'bool expects true or false');
  assert.deepEqual(spellings('http://x'), ['str:http://x'], 'other words before a colon are text');
  assert.deepEqual(spellings(''), ['str:']);
});

test('a field that is declared as decimals is asked for by numbers of all kinds', () => {
  const spellings = (text: string) =>
    candidates('total', text, new Map([['total', 'decimal']])).map(({ spelling }) => spelling);
  assert.deepEqual(spellings('5'), ['int:5']);
  assert.deepEqual(spellings('0.1'), ['num:0.1', 'dec:0.1']);
  assert.throws(() => spellings('x'), refusedWith('invalid-parameter'));
});

test('every spelling is read as its kind alone', () => {
  for (const text of ['42', '0.1', '655b0b800000000100000000', '2026-01-31T10:00Z', 'true', 'x'])
    for (const { kind, spelling, value } of readingsOf(text) as Exclude<
      ReturnType<typeof readingsOf>,
      { prefix: string }
    >) {
      const again = readingsOf(spelling);
      assert.ok(!isMisfit(again), spelling);
      assert.deepEqual(
        again.map((one) => [one.kind, String(one.value)]),
        [[kind, String(value)]],
      );
    }
});

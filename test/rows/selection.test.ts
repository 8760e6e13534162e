import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ITEM_FORM, ITEM_KINDS } from '../../src/resources/items.ts';
import { textColumns } from '../../src/resources/stream/sampled-columns.ts';
import { csvHeader } from '../../src/rows/csv-cell.ts';
import { javascriptTranscoder, type TextTranscoder } from '../support/rows/javascript-transcoder.ts';
import {
  EVERYTHING,
  pathFault,
  policyFault,
  Selection,
  type SelectionPaths,
} from '../../src/rows/selection.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import { BSON, type Document } from '../../src/store/values/bson.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { array, document, int32, nullValue, object, row, string } from '../support/rows/bson-writer.ts';
import type { Value } from '../support/rows/bson-writer.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { arrayBody, batchOf, transcode } from '../support/rows/transcode.ts';

const slots = new Slots();
const wasm = createTranscoder(slots);
const transcoders: readonly TextTranscoder[] = [wasm, javascriptTranscoder];

/** The text of a row from each transcoder: as JSON, or as CSV of these columns. */
function written(bytes: Uint8Array, paths: SelectionPaths, columns?: readonly string[]): string[] {
  const selection = new Selection(paths);
  return transcoders.map((transcoder) =>
    transcode(transcoder, slots, [bytes], 256, (each) =>
      columns ? each.table(columns, false, selection) : each.encoder('lines', selection),
    ),
  );
}

function gives(stored: Document, paths: SelectionPaths, expected: Document): void {
  const bytes = BSON.serialize(stored);
  const text = JSON.stringify(expected);
  assert.deepEqual(written(bytes, paths), [`${text}\n`, `${text}\n`], JSON.stringify(paths));
}

const ORDER = {
  _id: { shop: 1, number: 7 },
  card: { number: '4111', name: 'A' },
  lines: [{ sku: 'x', cost: 1 }, 5, [{ sku: 'y', cost: 2 }]],
  'internal.note': 'literal',
  internal: { note: 'nested', level: 2 },
  total: 3,
};
const ID = { id: ORDER._id };

test('only the named top-level fields are written, in stored order, and always the key, under its name in the whole row', () => {
  const row = { _id: 7, name: 'n', category: 'c', price: 1, nested: { name: 'inner', _id: 1 }, ü: 'x' };
  const other = { ...row, id: 'own' };
  gives(row, { fields: ['price', 'name'] }, { id: 7, name: 'n', price: 1 });
  gives(row, { fields: ['nested'] }, { id: 7, nested: { name: 'inner', _id: 1 } });
  gives(row, { fields: ['ü', 'id'] }, { id: 7, ü: 'x' });
  gives(other, { fields: ['price'] }, { _id: 7, price: 1 });
  gives(other, { fields: ['ü', 'id'] }, { _id: 7, ü: 'x', id: 'own' });
  for (const fields of [[], ['_id']]) {
    gives(other, { fields }, { _id: 7 });
    gives(row, { fields }, { id: 7 });
  }
  gives(row, { fields: ['nam', 'names', 'missing', '_id'] }, { id: 7 });
  assert.equal(slots.taken, 0);
});

test('a hidden path hides all below it, goes through arrays, and also hides fields with dots in their names', () => {
  const { _id, card, lines, internal, total } = ORDER;
  const dotted = { 'internal.note': 'literal' };
  gives(ORDER, { hide: ['card'] }, { ...ID, lines, ...dotted, internal, total });
  gives(
    ORDER,
    { hide: ['card.number', 'internal.note', 'lines'] },
    {
      ...ID,
      card: { name: 'A' },
      internal: { level: 2 },
      total,
    },
  );
  gives(
    ORDER,
    { hide: ['lines.cost', 'internal'] },
    {
      ...ID,
      card,
      lines: [{ sku: 'x' }, 5, [{ sku: 'y' }]],
      total,
    },
  );
  gives(ORDER, { hide: [] }, { ...ID, card, lines, ...dotted, internal, total });
  gives({ _id: 1, a: 2, id: 3 }, { hide: ['a'] }, { _id: 1, id: 3 });
  assert.equal(_id.number, 7);
});

test('only shown paths leave the server, and the key', () => {
  gives(
    ORDER,
    { show: ['card.name', 'lines.sku', 'total.net'] },
    {
      ...ID,
      card: { name: 'A' },
      lines: [{ sku: 'x' }, [{ sku: 'y' }]],
    },
  );
  gives(
    ORDER,
    { show: ['internal.note'] },
    {
      ...ID,
      'internal.note': 'literal',
      internal: { note: 'nested' },
    },
  );
  gives(ORDER, { show: [] }, ID);
  gives({ _id: 1, a: 2, id: { b: 3, c: 4 } }, { show: ['id.b'] }, { _id: 1, id: { b: 3 } });
});

test('a hidden field that is asked for gives what a field that no row has gives', () => {
  for (const policy of [
    { hide: ['card', 'internal.note', 'lines.cost'] },
    { show: ['internal.level', 'lines.sku', 'total'] },
  ]) {
    for (const [hidden, missing] of [
      ['card', 'none'],
      ['card.name', 'none.name'],
      ['internal.note', 'internal.none'],
      ['lines.cost', 'lines.none'],
    ] as const) {
      const bytes = BSON.serialize(ORDER);
      const of = (field: string) => [
        written(bytes, { ...policy, fields: [field, 'total'] }),
        written(bytes, { ...policy, fields: [field, 'total'] }, ['id', 'v', 'total']),
        written(bytes, { ...policy, fields: [field, 'total'] }, ['id', field, 'total']),
      ];
      assert.deepEqual(of(hidden), of(missing), `${hidden} under ${JSON.stringify(policy)}`);
      assert.ok(!JSON.stringify(of(hidden)).includes('4111'));
    }
  }
});

test('a table has no hidden value, and no column of a hidden field', async (t) => {
  const bytes = BSON.serialize(ORDER);
  const key = '"{""shop"":1,""number"":7}"';
  const hide = new Selection({ hide: ['card', 'internal.note', 'lines.cost'] });
  const batch = batchOf(slots, arrayBody([bytes]));
  const none = () => Promise.reject(new Error('one batch is enough'));
  const plan = { sort: '_id', direction: 1 } as const;
  const columnsOf = (shown: Selection) => {
    const resource = { rows: { read: none, split: none }, form: ITEM_FORM, kinds: ITEM_KINDS, shown };
    return textColumns({ resource, plan, first: batch, most: 1, signal: t.signal });
  };
  const columns = await columnsOf(hide);
  const all = await columnsOf(EVERYTHING);
  const shown = await columnsOf(new Selection({ show: ['lines.sku'] }));
  batch.release();
  assert.equal(csvHeader(columns, false), 'id,category,price,lines,internal,total\r\n');
  assert.equal(csvHeader(all, false), 'id,category,price,card,lines,internal.note,internal,total\r\n');
  assert.equal(csvHeader(shown, false), 'id,category,price,lines\r\n');
  const line = `${key},"[{""sku"":""x""},5,[{""sku"":""y""}]]","{""level"":2}",,\r\n`;
  const names = ['id', 'lines', 'internal', 'internal.note', 'card'];
  assert.deepEqual(written(bytes, { hide: ['card', 'internal.note', 'lines.cost'] }, names), [line, line]);
  const paths = {
    hide: ['lines.cost'],
    fields: ['id.shop', 'lines', 'card.name', 'total.net', 'internal.note'],
  };
  const cells = '1,"[{""sku"":""x""},5,[{""sku"":""y""}]]",A,,literal\r\n';
  assert.deepEqual(written(bytes, paths, paths.fields), [cells, cells]);
});

test('an own field id is selected by its path, and the key stays whole', () => {
  const own = { _id: { a: 1, b: 2 }, id: { a: 3, b: 4 } };
  gives(own, { fields: ['id.a'] }, { _id: { a: 1, b: 2 }, id: { a: 3 } });
  gives(own, { fields: ['_id.a'] }, { _id: { a: 1, b: 2 } });
  const cells = written(BSON.serialize(own), { fields: ['_id', 'id.a'] }, ['_id', 'id.a']);
  assert.equal(cells[0], '"{""a"":1,""b"":2}",3\r\n');
  assert.equal(cells[1], cells[0]);
});

test('of equal names on a path, JSON shows each, and a table the first that has the value', () => {
  const bytes = row(1, [
    ['a', int32(1)],
    ['a', object([['c', int32(2)]])],
    ['a', object([['b', nullValue], ['b', int32(3)]])], // prettier-ignore
    ['a', array([object([['b', int32(4)]])])],
  ]);
  const line = '{"id":1,"a":{},"a":{"b":null,"b":3},"a":[{"b":4}]}\n';
  assert.deepEqual(written(bytes, { fields: ['a.b'] }), [line, line]);
  assert.deepEqual(written(bytes, { fields: ['a.b'] }, ['id', 'a.b']), ['1,\r\n', '1,\r\n']);
});

test('a selection reaches through 180 levels, and no deeper', () => {
  const nested = (levels: number): Value =>
    levels === 0 ? string('end') : object([['a', nested(levels - 1)], ['b', int32(levels)]]); // prettier-ignore
  const path = (levels: number) => Array.from({ length: levels }, () => 'a').join('.');
  const bytes = document([['_id', int32(1)], ['a', nested(179)]]); // prettier-ignore
  const expected = `{"id":1,"a":${'{"a":'.repeat(179)}"end"${'}'.repeat(180)}\n`;
  assert.deepEqual(written(bytes, { fields: [path(180)] }), [expected, expected]);
  assert.deepEqual(written(bytes, { fields: [path(180)] }, ['id', path(180)]), ['1,end\r\n', '1,end\r\n']);
  const deeper = document([['_id', int32(1)], ['a', nested(180)]]); // prettier-ignore
  for (const columns of [undefined, ['id', path(181)]])
    assert.throws(() => written(deeper, { fields: [path(181)] }, columns), /180 levels/);
  assert.deepEqual(written(deeper, { hide: ['a.a'] }), [
    '{"id":1,"a":{"b":180}}\n',
    '{"id":1,"a":{"b":180}}\n',
  ]);
});

test('paths that cannot name a field are refused, and so is hiding the key', () => {
  for (const path of ['', '.', 'a.', '.a', 'a..b', 'a\0b']) {
    assert.ok(pathFault(path), JSON.stringify(path));
    assert.throws(() => new Selection({ fields: [path] }), RangeError);
    assert.throws(() => new Selection({ hide: [path] }), RangeError);
  }
  for (const path of ['id', '_id', '_id.a', 'id.a']) {
    assert.match(policyFault(path) ?? '', /key, which cannot be hidden/);
    assert.throws(() => new Selection({ hide: ['a', path] }), /cannot be hidden/);
    assert.doesNotThrow(() => new Selection({ show: [path] }));
  }
  assert.equal(policyFault('ids'), undefined);
  assert.throws(() => new Selection({ hide: ['a'], show: ['b'] }), RangeError);
});

test('a selection knows which paths are whole, for filters and sorts', () => {
  const hide = new Selection({ hide: ['a.b', 'c'] });
  const show = new Selection({ show: ['a.b', 'c'] });
  const whole = (selection: Selection) =>
    ['a', 'a.b', 'a.b.c', 'a.c', 'c', 'c.d', 'd', 'id', '_id'].filter((path) => selection.leavesWhole(path));
  assert.deepEqual(whole(hide), ['a.c', 'd', 'id', '_id']);
  assert.deepEqual(whole(show), ['a.b', 'a.b.c', 'c', 'c.d', 'id', '_id']);
  assert.deepEqual(hide.pick(['a.b', 'a', 'a']).fields, ['a']);
  assert.deepEqual(hide.pick(['x']).policy, hide.policy);
});

test('fields and hide leave of any document what the projections of MongoDB leave', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const client = testClient(t, uri);
  const rows = client.db().collection<Document & { _id: number }>('selected');
  const leaves = [
    1,
    null,
    'text',
    [],
    {},
    [1, { b: 1, c: [2, { b: 3 }] }],
    { b: { c: 1 }, d: [[{ c: 1 }, 2]] },
  ];
  const documents = leaves.flatMap((a, n) =>
    leaves.map((b, m) => ({ _id: 10 * n + m, a: { b: a, c: [b, { b: a }] }, b: [a, [b, { a: b }]], c: b })),
  );
  await rows.insertMany(documents);
  for (const paths of [['a.b'], ['a.b.c', 'b'], ['a.c.b', 'b.a'], ['c.b', 'c.d.c', 'a.c'], ['b.0', 'x.y']]) {
    const projection = (sign: 0 | 1) => Object.fromEntries(paths.map((path) => [path, sign]));
    const policies = paths.includes('b.0')
      ? []
      : ([
          [0, { hide: paths }],
          [1, { show: paths }],
        ] as const); // refused
    for (const [sign, selection] of [[1, { fields: paths }] as const, ...policies]) {
      const expected = await rows.find({}, { projection: projection(sign), sort: { _id: 1 } }).toArray();
      const text = expected.map(({ _id, ...rest }) => `${JSON.stringify({ id: _id, ...rest })}\n`);
      for (const [n, stored] of documents.entries())
        assert.deepEqual(
          written(BSON.serialize(stored), selection),
          [text[n], text[n]],
          JSON.stringify(selection),
        );
    }
  }
});

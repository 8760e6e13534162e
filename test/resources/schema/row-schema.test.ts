import { Ajv2020 } from 'ajv/dist/2020.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rowSchema } from '../../../src/resources/schema/row-schema.ts';
import { RowShape } from '../../../src/resources/schema/shape.ts';
import type { Kind } from '../../../src/resources/query/kinds.ts';
import { EVERYTHING, Selection } from '../../../src/rows/selection.ts';
import {
  Binary,
  BSON,
  Decimal128,
  Double,
  Long,
  MinKey,
  ObjectId,
  Timestamp,
  UUID,
} from '../../../src/store/values/bson.ts';
import fc from '../../support/fast-check.ts';
import { anyRow } from '../../support/rows/any-row.ts';
import { itemToJson } from '../../support/rows/item-json.ts';

interface Made {
  readonly required?: readonly string[];
  readonly properties: Readonly<Record<string, unknown>>;
}

function schemaOf(rows: readonly Uint8Array[], shown = EVERYTHING, kinds: Record<string, Kind> = {}): Made {
  const shape = new RowShape();
  for (const row of rows) shape.add(Buffer.from(row), shown);
  return rowSchema({ name: 'orders', shown, kinds: new Map(Object.entries(kinds)) }, shape) as never;
}

const fieldsOf = (...documents: Record<string, unknown>[]) =>
  schemaOf(documents.map((one) => BSON.serialize({ _id: 1, ...one }))).properties;

const HEX = { type: 'string', pattern: '^[0-9a-f]{24}$' };
const OPEN = { type: 'object', additionalProperties: true };

test('a value has the schema of what its row shows', () => {
  const cases: [value: unknown, schema: unknown][] = [
    ['a', { type: 'string' }],
    [true, { type: 'boolean' }],
    [7, { type: 'integer', format: 'int64' }],
    [Long.fromString('9007199254740993'), { type: 'integer', format: 'int64' }],
    [new Double(7), { type: 'number' }],
    [new Double(NaN), { type: 'null' }],
    [Decimal128.fromString('1.50'), { type: 'number', format: 'decimal' }],
    [Decimal128.fromString('NaN'), { type: 'null' }],
    [null, { type: 'null' }],
    [new ObjectId(), HEX],
    [new UUID(), { type: 'string', format: 'uuid' }],
    [new Binary(Buffer.from('a')), { type: 'string', contentEncoding: 'base64' }],
    [new Date(0), { type: 'string', format: 'date-time' }],
    [new Date('+012345-01-01T00:00:00Z'), { type: 'string' }],
    [new Timestamp(1n), OPEN],
    [new MinKey(), OPEN],
    [/a/, OPEN],
    [{ $ref: 'customers', $id: 7 }, OPEN],
    [{ 'not a name': 'a' }, { type: 'object', properties: { 'not a name': { type: 'string' } } }],
    [[], { type: 'array', items: {} }],
    [
      [1, 'a'],
      { type: 'array', items: { anyOf: [{ type: 'integer', format: 'int64' }, { type: 'string' }] } },
    ],
    [
      [{ a: [true] }],
      {
        type: 'array',
        items: { type: 'object', properties: { a: { type: 'array', items: { type: 'boolean' } } } },
      },
    ],
  ];
  for (const [value, schema] of cases) assert.deepEqual(fieldsOf({ value }).value, schema);
});

test('values of several kinds have a union, and a kind within another one is part of that', () => {
  assert.deepEqual(fieldsOf({ a: null }, { a: 'x' }).a, { type: ['string', 'null'] });
  assert.deepEqual(fieldsOf({ a: new Date(0) }, { a: null }).a, {
    type: ['string', 'null'],
    format: 'date-time',
  });
  assert.deepEqual(fieldsOf({ a: true }, { a: 'x' }, { a: null }).a, { type: ['boolean', 'string', 'null'] });
  assert.deepEqual(fieldsOf({ a: 1 }, { a: new Double(1.5) }).a, { type: 'number' });
  assert.deepEqual(fieldsOf({ a: new ObjectId() }, { a: 'x' }).a, { type: 'string' });
  assert.deepEqual(fieldsOf({ a: { b: 1 } }, { a: { c: 'x' } }, { a: null }).a, {
    anyOf: [
      { type: 'object', properties: { b: { type: 'integer', format: 'int64' }, c: { type: 'string' } } },
      { type: 'null' },
    ],
  });
});

test('a document whose names are values is open, and so is what lies very deep', () => {
  const byUser = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`user${n}`, n]));
  assert.deepEqual(fieldsOf({ byUser }, { byUser: { other: 1 } }).byUser, OPEN);
  let deep: unknown = 1;
  for (let n = 0; n < 100; n++) deep = { deep };
  assert.ok(JSON.stringify(fieldsOf({ deep })).includes('"additionalProperties":true'));
});

test('the key is id, or _id beside a field id', () => {
  const plain = BSON.serialize({ _id: new ObjectId() });
  const own = BSON.serialize({ _id: 1, id: 'x' });
  assert.deepEqual(schemaOf([plain]).required, ['id']);
  assert.deepEqual(schemaOf([plain]).properties, { id: HEX });
  assert.deepEqual(schemaOf([own]).required, ['_id']);
  assert.deepEqual(schemaOf([own]).properties, {
    _id: { type: 'integer', format: 'int64' },
    id: { type: 'string' },
  });
  assert.equal(schemaOf([plain, own]).required, undefined);
  assert.deepEqual(schemaOf([plain, own]).properties.id, {});
  assert.equal(schemaOf([]).required, undefined);
});

test('a declared kind is exact, also where no row of the sample has the field', () => {
  const rows = [{ total: 1.5, note: 'x', at: null }, { total: 'x' }, { tags: ['a', 7] }].map((one, n) =>
    BSON.serialize({ _id: n, ...one }),
  );
  const kinds = { total: 'decimal', at: 'date', tags: 'string', 'customer.born': 'date' } as const;
  const { properties } = schemaOf(rows, EVERYTHING, kinds);
  assert.deepEqual(properties, {
    id: { type: 'integer', format: 'int64' },
    total: { type: 'number', format: 'decimal' },
    note: { type: 'string' },
    at: { type: ['string', 'null'], format: 'date-time' },
    tags: { type: 'array', items: { type: 'string' } },
    customer: { type: 'object', properties: { born: { type: 'string', format: 'date-time' } } },
  });
});

test('nothing is said of what is hidden, also of a declared field', () => {
  const rows = [
    BSON.serialize({ _id: 1, a: { secret: 1, b: 2 }, list: [1, { secret: 1, c: 3 }], secret: 'x' }),
  ];
  const kinds = { secret: 'string', 'a.secret': 'number', 'gone.secret': 'date' } as const;
  const hide = ['secret', 'a.secret', 'list.secret', 'gone.secret'];
  const hidden = JSON.stringify(schemaOf(rows, new Selection({ hide }), kinds));
  assert.doesNotMatch(hidden, /secret|gone/);
  assert.match(hidden, /"c"/);
  const { properties } = schemaOf(rows, new Selection({ show: ['a.b', 'list.c'] }), kinds);
  assert.deepEqual(Object.keys(properties), ['id', 'a', 'list']);
  assert.doesNotMatch(JSON.stringify(properties), /secret/);
  const { items } = properties.list as { items: unknown };
  assert.deepEqual(items, { type: 'object', properties: { c: { type: 'integer', format: 'int64' } } });
});

test('the JSON of any rows is valid by the schema of these rows', () => {
  const plain = { strict: false, validateFormats: false, meta: false, validateSchema: false } as const;
  const ajv = new Ajv2020({ ...plain, ownProperties: true }); // a row may have a field `constructor`
  const rows = fc.array(anyRow, { minLength: 1, maxLength: 4 });
  const property = fc.property(rows, (some) => {
    const validate = ajv.compile(schemaOf(some));
    for (const row of some) {
      const json = itemToJson(row);
      assert.ok(validate(JSON.parse(json)), `${json}: ${ajv.errorsText(validate.errors)}`);
    }
    ajv.removeSchema();
  });
  fc.assert(property, { numRuns: process.env.LONG === '1' ? 20_000 : 150 });
});

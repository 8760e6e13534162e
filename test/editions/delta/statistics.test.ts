import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChunkEntry } from '../../../src/base/edition/head.ts';
import { tableSchema } from '../../../src/editions/delta/schema.ts';
import { statisticsOf } from '../../../src/editions/delta/statistics.ts';
import type { ColumnKind } from '../../../src/rows/arrow/columns.ts';
import { Binary, BSON, ObjectId, UUID } from '../../../src/store/values/bson.ts';

const OID = new ObjectId('5f6b2c1e0000400080000000');
const OID_TEXT = OID.toString();
const UUID_TEXT = '5f6b2c1e-0000-4000-8000-000000000001';
const DATE = new Date('2026-01-01T00:00:00Z');

/** A chunk that ends with an id. `shown`: its first and last id in JSON. */
function chunk(id: unknown, ...[first, last]: readonly unknown[]): ChunkEntry {
  const bound = Buffer.from(BSON.serialize({ _id: id })).toString('base64url');
  return { name: '', rows: 7, bytes: 0, crc32: '', first, last, bound, sizes: {} };
}

/** Chunks whose ids are in the order of their column, and others. */
const CASES: readonly (readonly [
  title: string,
  kind: ColumnKind,
  own: ChunkEntry,
  before: ChunkEntry | undefined,
  hasBounds: boolean,
])[] = [
  ['integers', 'integer', chunk(9, 1, 9), undefined, true],
  ['integers behind null', 'integer', chunk(9, null, 9), undefined, false],
  ['integers that JSON does not keep', 'integer', chunk(9, 1, 2 ** 53), undefined, false],
  ['a fraction', 'integer', chunk(9.5, 1, 9.5), undefined, false],
  ['texts at the beginning', 'text', chunk('b', 'a', 'b'), undefined, true],
  ['texts behind texts', 'text', chunk('b', 'a', 'b'), chunk('a', 'a', 'a'), true],
  ['texts that begin behind numbers', 'text', chunk('b', 1, 'b'), chunk(1, 1, 1), false],
  ['texts in a column of integers', 'integer', chunk('b', 'a', 'b'), chunk('a', 'a', 'a'), false],
  ['long texts', 'text', chunk('b', 'a', 'b'.repeat(300)), undefined, false],
  ['ObjectIds at the beginning', 'objectId', chunk(OID, OID_TEXT, OID_TEXT), undefined, false],
  ['ObjectIds behind ObjectIds', 'objectId', chunk(OID, OID_TEXT, OID_TEXT), chunk(OID, '', ''), true],
  ['ObjectIds behind texts', 'text', chunk(OID, 'a', OID_TEXT), chunk('a', 'a', 'a'), false],
  [
    'dates behind dates',
    'date',
    chunk(DATE, DATE.toISOString(), DATE.toISOString()),
    chunk(DATE, '', ''),
    true,
  ],
  [
    'dates before the common era',
    'date',
    chunk(DATE, '-000001-01-01T00:00:00.000Z', DATE.toISOString()),
    chunk(DATE, '', ''),
    false,
  ],
  [
    'UUIDs behind UUIDs',
    'uuid',
    chunk(new UUID(UUID_TEXT), UUID_TEXT, UUID_TEXT),
    chunk(new UUID(UUID_TEXT), '', ''),
    true,
  ],
  [
    'other bytes',
    'binary',
    chunk(new Binary(Buffer.from('ab')), 'YWI=', 'YWI='),
    chunk(new Binary(Buffer.from('a')), '', ''),
    false,
  ],
];

for (const [title, kind, own, before, hasBounds] of CASES)
  test(`a chunk of ${title} has ${hasBounds ? 'bounds' : 'no bounds'} in the log`, () => {
    const { minValues, maxValues, numRecords } = statisticsOf(
      own,
      before,
      tableSchema([{ name: 'id', kind }]),
    );
    assert.equal(numRecords, 7);
    assert.deepEqual(
      [minValues, maxValues],
      hasBounds ? [{ id: own.first }, { id: own.last }] : [undefined, undefined],
    );
  });

test('a table whose ids have no column has no bounds, also where rows have a field `id`', () => {
  const schema = tableSchema([
    { name: '_id', kind: 'json' },
    { name: 'id', kind: 'integer' },
  ]);
  assert.deepEqual(statisticsOf(chunk(9, 1, 9), undefined, schema), { numRecords: 7 });
});

test('names that Delta does not allow, and second ones that differ in case, have no column', () => {
  const names = ['id', 'a', 'A', 'a b', 'a.b', 'a,b', 'a=b', '_REST', '', 'ß', '$x', 'x-y'];
  const { columns } = tableSchema(names.map((name) => ({ name, kind: 'text' })));
  assert.deepEqual(
    columns.map(({ name }) => name),
    ['id', 'a', 'ß', '$x', 'x-y'],
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'csv-parse/sync';
import { Decimal128 } from '../../src/store/values/bson.ts';
import fc, { anyCharacter } from '../support/fast-check.ts';
import { COMMAS, csvHeader } from '../../src/rows/csv-cell.ts';
import { itemToJson } from '../support/rows/item-json.ts';
import {
  csvWriter,
  javascriptTranscoder,
  type TextTranscoder,
} from '../support/rows/javascript-transcoder.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { anyRow } from '../support/rows/any-row.ts';
import {
  array,
  binary,
  boolean,
  date,
  decimal128,
  double,
  int32,
  int64,
  nullValue,
  object,
  objectId,
  row,
  string,
  timestamp,
} from '../support/rows/bson-writer.ts';
import type { Field, Value } from '../support/rows/bson-writer.ts';
import { arrayBody, batchOf, decode, transcode } from '../support/rows/transcode.ts';

const slots = new Slots();
const wasm = createTranscoder(slots);
const transcoders: readonly TextTranscoder[] = [wasm, javascriptTranscoder];

function table(
  transcoder: TextTranscoder,
  rows: readonly Uint8Array[],
  columns: readonly string[],
  safe = false,
  chunkBytes = 16_000,
): string {
  return transcode(transcoder, slots, rows, chunkBytes, (each) => each.table(columns, safe));
}

function gives(value: Value, cell: string, safe = false): void {
  for (const transcoder of transcoders)
    assert.equal(table(transcoder, [row(1, [['v', value]])], ['id', 'v'], safe), `1,${cell}\r\n`);
}

const CELLS: [value: Value, cell: string][] = [
  [string('a b'), 'a b'],
  [string(''), '""'],
  [string('a,b'), '"a,b"'],
  [string('"a" b'), '"""a"" b"'],
  [string('a\r\nb'), '"a\r\nb"'],
  [string(`${'x'.repeat(40)}"`), `"${'x'.repeat(40)}"""`],
  [string('é\u0001\0\u{1f600}\\'), 'é\u0001\0\u{1f600}\\'],
  [string(Buffer.from([0xe2, 0x82, 0x41, 0xff])), '\ufffdA\ufffd'],
  [nullValue, ''],
  [double(NaN), ''],
  [double(-0.25), '-0.25'],
  [int64(-(2n ** 60n)), '-1152921504606846976'],
  [boolean(true), 'true'],
  [date(0n), '1970-01-01T00:00:00.000Z'],
  [date(9n * 10n ** 15n), '"{""$date"":{""$numberLong"":""9000000000000000""}}"'],
  [objectId('0123456789abcdef01234567'), '0123456789abcdef01234567'],
  [binary(4, Buffer.alloc(16, 7)), '07070707-0707-0707-0707-070707070707'],
  [binary(0, Buffer.from('abc')), 'YWJj'],
  [binary(0, Buffer.alloc(0)), '""'],
  [array([int32(1)]), '"[1]"'],
  [object([['a"', string('x"')]]), '"{""a\\"""":""x\\""""}"'],
  [timestamp(5n), '"{""$timestamp"":{""t"":0,""i"":5}}"'],
];

/** Cells of tables for a German Excel: semicolons between them, and commas before decimals. */
const GERMAN: [value: Value, cell: string, safe?: string][] = [
  [double(-0.25), '-0,25'],
  [double(1e21), '1e+21'],
  [double(1.5e-9), '1,5e-9'],
  [double(12.125), '12,125'],
  [double(7), '7'],
  [decimal128(Decimal128.fromString('1234.50').bytes), '1234,50'],
  [int64(5n), '5'],
  [string('a;b'), '"a;b"'],
  [string('a,b'), '"a,b"'],
  [string('1.5'), '1.5'],
  [string('=a;b'), '"=a;b"', `"'=a;b"`],
  [string(`${'x'.repeat(400)};"`), `"${'x'.repeat(400)};"""`],
  [string('\uff1d;'), '"\uff1d;"', `"'\uff1d;"`],
  [string('-1'), '-1', "'-1"],
  [object([['a', double(1.5)]]), '"{""a"":1.5}"'],
  [boolean(true), 'true'],
];

test('a table with decimal commas has semicolons between cells, and quotes those with one', () => {
  for (const [value, exact, safe = exact] of GERMAN)
    for (const [isSafe, cell] of [
      [false, exact],
      [true, safe],
    ] as const)
      for (const transcoder of transcoders)
        for (const chunkBytes of [256, 16_000]) {
          const rows = [row(1, [['v', value]]), row(2, [['v', value]])];
          const text = transcode(transcoder, slots, rows, chunkBytes, (each) =>
            each.table(['id', 'v'], isSafe, undefined, COMMAS),
          );
          assert.equal(text, `1;${cell}\r\n2;${cell}\r\n`);
        }
  assert.equal(csvHeader(['id', 'a;b', '=c'], true, COMMAS), `id;"a;b";'=c\r\n`);
});

test('each type has the same cell from wasm and from the serializer', () => {
  for (const [value, cell] of CELLS) gives(value, cell);
});

test('safe disarms text that a spreadsheet would take for a formula, and leaves numbers unchanged', () => {
  for (const first of ['=', '+', '-', '@', '\t', '＝', '＋', '－', '＠'])
    gives(string(`${first}1`), `'${first}1`, true);
  for (const only of ['-', '＝']) gives(string(only), `'${only}`, true);
  gives(string('\r1'), '"\'\r1"', true);
  gives(string('\n=1'), '"\'\n=1"', true);
  gives(string('＞1'), '＞1', true);
  gives(string(Buffer.from([0xef, 0xbc])), '\ufffd', true);
  gives(string('＝1'), '＝1', false);
  gives(string('=1,2'), '"\'=1,2"', true);
  gives(string('a=1'), 'a=1', true);
  gives(double(-1.5), '-1.5', true);
  gives(binary(0, Buffer.from([0xf8, 1, 2])), "'+AEC", true);
  gives(date(-62_198_755_200_001n), "'-000002-12-31T23:59:59.999Z", true);
  gives(date(253_402_300_800_000n), "'+010000-01-01T00:00:00.000Z", true);
  gives(string('=1'), '=1', false);
  assert.equal(csvHeader(['id', '=x', 'a,b'], true), `id,'=x,"a,b"\r\n`);
});

test("columns come in the requested order whatever the order of a row's fields, and missing fields are empty", () => {
  const rows = [
    row(1, [
      ['a', int32(1)],
      ['b', int32(2)],
      ['a', int32(3)],
    ]),
    row(2, [
      ['b', int32(2)],
      ['id', int32(9)],
      ['a', int32(1)],
    ]),
    row(3, []),
  ];
  for (const transcoder of transcoders)
    assert.equal(table(transcoder, rows, ['b', 'id', 'none', 'a']), '2,1,,1\r\n2,2,,1\r\n,3,,\r\n');
});

test('a column _id holds the key of every row, and a column id the field of that name', () => {
  const rows = [row(1, [['id', string('own')]]), row(2, [['a', int32(3)]])];
  for (const transcoder of transcoders) {
    assert.equal(table(transcoder, rows, ['_id', 'id', 'a']), '1,own,\r\n2,,3\r\n');
    assert.equal(table(transcoder, rows, ['a', '_id']), ',1\r\n3,2\r\n');
    assert.equal(table(transcoder, rows, ['id', 'a']), '1,\r\n2,3\r\n');
  }
});

test('wasm and the serializer write the same cells for rows of any types, in chunks of any size', () => {
  const name = fc.constantFrom('id', '_id', 'a', 'b', 'v', '', 'é', 'name', 'price', '0', '1');
  const columns = fc.uniqueArray(name, { minLength: 1 });
  const sizes = fc.constantFrom(256, 257, 300, 1000, 16_000);
  const property = fc.property(
    fc.array(anyRow, { minLength: 1, maxLength: 3 }),
    columns,
    sizes,
    fc.boolean(),
    (rows, extra, size, safe) => {
      const names = [...new Set([...extra, ...rows.flatMap(namesOf)])];
      const expected = rows.map((bytes) => csvWriter(names, safe)(bytes)).join('');
      assert.equal(table(wasm, rows, names, safe, size), expected);
    },
  );
  fc.assert(property, { numRuns: process.env.LONG ? 200_000 : 500 });
});

/** The names of a row's top-level fields, as its JSON has them. Broken names cannot be requested. */
function namesOf(bytes: Buffer): string[] {
  return Object.keys(JSON.parse(itemToJson(bytes)) as object).filter((name) => !name.includes('\ufffd'));
}

/** Cells that are longer than a small chunk. */
const PARTS: Field[] = [
  ['text', string('lorem "ipsum", '.repeat(50))],
  ['plain', string('x'.repeat(900))],
  ['letters', string('语言"文字é'.repeat(40))],
  ['bytes', binary(0, Buffer.alloc(801, 'base64'))],
  ['nested', array([object([['"k"', string('"\\'.repeat(100))]]), string('é"'.repeat(90))])],
];
const NAMES = ['id', ...PARTS.map(([name]) => name as string)];
const LONG_ROWS = [row(1, PARTS), row(2, PARTS.toReversed()), row(3, PARTS)];

test('cells longer than a chunk are complete', () => {
  const expected = LONG_ROWS.map((bytes) => csvWriter(NAMES, true)(bytes)).join('');
  for (const size of [256, 257, 1000, 16_000])
    assert.equal(table(wasm, LONG_ROWS, NAMES, true, size), expected, `chunks of ${size}`);
});

test('a text is quoted wherever its special character stands, in the text and in the chunk', () => {
  const found = [',', '"', '\n', '\r', '\0', 'é', '😀', Buffer.of(0xf0), Buffer.of(0xe2, 0x82)];
  const rows = found.flatMap((what) =>
    Array.from({ length: 36 }, (_, at) => {
      const text = Buffer.alloc(36, at % 2 === 0 ? '=abc' : '＝abc');
      Buffer.from(what).copy(text, at);
      return row(at, [['v', string(text)]]);
    }),
  );
  for (const safe of [false, true]) {
    const expected = rows.map((bytes) => csvWriter(['v', 'id'], safe)(bytes)).join('');
    for (let size = 256; size < 300; size++)
      assert.equal(table(wasm, rows, ['v', 'id'], safe, size), expected, `chunks of ${size}`);
  }
});

test('a CSV reader reads back the values of the rows', () => {
  const text = fc.string({ unit: anyCharacter }).filter((value) => !value.includes('\ufffd'));
  const property = fc.property(fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 5 }), (pairs) => {
    const rows = pairs.map(([a, b], n) =>
      row(n, [
        ['a', string(a)],
        ['b', string(b)],
      ]),
    );
    const csv = csvHeader(['id', 'a', 'b'], false) + table(wasm, rows, ['id', 'a', 'b']);
    assert.deepEqual(
      parse(csv, { columns: true, record_delimiter: '\r\n' }),
      pairs.map(([a, b], n) => ({ id: String(n), a, b })),
    );
  });
  fc.assert(property, { numRuns: 100 });
});

test('a table that is cut ends with the current row, wherever the cut is, and continues with the next one', () => {
  const lines = LONG_ROWS.map((bytes) => csvWriter(NAMES, false)(bytes));
  const ends = LONG_ROWS.map((_, n) => arrayBody(LONG_ROWS.slice(0, n + 1)).length);
  for (let steps = 1; steps < 40; steps++) {
    const encoder = wasm.table(NAMES, false);
    const batch = batchOf(slots, arrayBody(LONG_ROWS));
    const chunks: Buffer[] = [];
    let end = batch.length;
    for (const chunk of encoder.encode(batch, 300)) {
      chunks.push(Buffer.from(chunk));
      if (chunks.length === steps) end = encoder.cut();
    }
    const whole = end === 0 ? 0 : ends.indexOf(end) + 1;
    assert.ok(end === 0 || whole > 0, 'it ends with a row');
    assert.equal(decode(chunks), lines.slice(0, whole).join(''), `after ${steps} steps`);
    encoder.close();
    batch.release();
  }
});

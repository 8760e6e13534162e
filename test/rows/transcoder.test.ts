import assert from 'node:assert/strict';
import { test } from 'node:test';
import { itemToJson } from '../support/rows/item-json.ts';
import { javascriptTranscoder } from '../support/rows/javascript-transcoder.ts';
import { rowToJson } from '../../src/rows/row-json.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import { BSON, Decimal128 } from '../../src/store/values/bson.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import {
  array,
  binary,
  boolean,
  code,
  codeWithScope,
  date,
  dbPointer,
  decimal128,
  document,
  double,
  int32,
  int64,
  maxKey,
  minKey,
  nullValue,
  object,
  objectId,
  regex,
  row,
  string,
  symbol,
  timestamp,
  undefinedValue,
} from '../support/rows/bson-writer.ts';
import type { Field, Value } from '../support/rows/bson-writer.ts';
import { transcode } from '../support/rows/transcode.ts';

const slots = new Slots();
const wasm = createTranscoder(slots);

/** Asserts that both transcoders write this text, in a batch and as a single row. */
function gives(bytes: Buffer, json: string): void {
  assert.equal(transcode(wasm, slots, [bytes]), `${json}\n`);
  assert.equal(rowToJson(bytes), json);
  assert.equal(transcode(javascriptTranscoder, slots, [bytes]), `${json}\n`);
}

function givesValue(value: Value, json: string): void {
  gives(row(1, [['v', value]]), `{"id":1,"v":${json}}`);
  gives(row(1, [['v', array([value, value])]]), `{"id":1,"v":[${json},${json}]}`);
}

const decimal = (text: string) => decimal128(Decimal128.fromString(text).bytes);

const VALUES: readonly (readonly [what: string, value: Value, json: string])[] = [
  ['zero', double(0), '0'],
  ['minus zero', double(-0), '0'],
  ['a price', double(12.5), '12.5'],
  ['cents', double(0.07), '0.07'],
  ['negative cents', double(-1234.56), '-1234.56'],
  ['thousandths', double(3.142), '3.142'],
  ['nine places', double(0.123456789), '0.123456789'],
  ['the smallest without exponent', double(0.000001), '0.000001'],
  ['the largest with a negative exponent', double(9.99e-7), '9.99e-7'],
  ['a sum that is not round', double(0.1 + 0.2), '0.30000000000000004'],
  ['2^53', double(2 ** 53), '9007199254740992'],
  ['the largest without exponent', double(999999999999999900000), '999999999999999900000'],
  ['1e21', double(1e21), '1e+21'],
  ['the smallest double', double(5e-324), '5e-324'],
  ['the largest double', double(Number.MAX_VALUE), '1.7976931348623157e+308'],
  ['NaN', double(NaN), 'null'],
  ['Infinity', double(Infinity), 'null'],
  ['-Infinity', double(-Infinity), 'null'],
  ['the smallest Int32', int32(-(2 ** 31)), '-2147483648'],
  ['the largest Int32', int32(2 ** 31 - 1), '2147483647'],
  ['2^53 + 1, which no double is', int64(2n ** 53n + 1n), '9007199254740993'],
  ['the smallest Int64', int64(-(2n ** 63n)), '-9223372036854775808'],
  ['the largest Int64', int64(2n ** 63n - 1n), '9223372036854775807'],
  ['Int64 with zeros inside', int64(10_000_000_000_000_007n), '10000000000000007'],
  ['Decimal128 with its zeros', decimal('12.50'), '12.50'],
  ['Decimal128 below one', decimal('-0.000001'), '-0.000001'],
  ['Decimal128 smaller still', decimal('1E-7'), '1E-7'],
  ['Decimal128 large', decimal('1E+3'), '1E+3'],
  [
    'Decimal128 of 34 digits',
    decimal('1234567890123456789012345678901234'),
    '1234567890123456789012345678901234',
  ],
  ['Decimal128 zero with places', decimal('0.00'), '0.00'],
  ['Decimal128 minus zero', decimal('-0'), '-0'],
  ['Decimal128 of 2^64', decimal('18446744073709551616'), '18446744073709551616'],
  ['Decimal128 NaN', decimal('NaN'), 'null'],
  ['Decimal128 Infinity', decimal('-Infinity'), 'null'],
  ['true', boolean(true), 'true'],
  ['false', boolean(false), 'false'],
  ['null', nullValue, 'null'],
  ['undefined', undefinedValue, 'null'],
  ['an ObjectId', objectId('0123456789abcdef00ff7f80'), '"0123456789abcdef00ff7f80"'],
  [
    'a UUID',
    binary(4, Buffer.from('00112233445566778899aabbccddeeff', 'hex')),
    '"00112233-4455-6677-8899-aabbccddeeff"',
  ],
  ['a UUID of a wrong length', binary(4, Buffer.from('001122', 'hex')), '"ABEi"'],
  ['an old UUID', binary(3, Buffer.alloc(16)), '"AAAAAAAAAAAAAAAAAAAAAA=="'],
  ['binary of 0 bytes', binary(0, Buffer.of()), '""'],
  ['binary of 1 byte', binary(0, Buffer.of(255)), '"/w=="'],
  ['binary of 2 bytes', binary(128, Buffer.of(251, 255)), '"+/8="'],
  ['binary of 3 bytes', binary(5, Buffer.of(0, 16, 131)), '"ABCD"'],
  ['old binary with its length inside', binary(2, Buffer.from('abc')), '"YWJj"'],
  ['a timestamp', timestamp((7n << 32n) | 4294967295n), '{"$timestamp":{"t":7,"i":4294967295}}'],
  [
    'a regular expression',
    regex('a"\\d', 'xi'),
    '{"$regularExpression":{"pattern":"a\\"\\\\d","options":"ix"}}',
  ],
  ['options bson does not know', regex('a', 'zg'), '{"$regularExpression":{"pattern":"a","options":"gz"}}'],
  ['code', code('f()\n'), '{"$code":"f()\\n"}'],
  ['code with scope', codeWithScope('f', [['n', int32(1)]]), '{"$code":"f","$scope":{"n":1}}'],
  ['a symbol', symbol('s'), '{"$symbol":"s"}'],
  [
    'a pointer',
    dbPointer('c', '0123456789abcdef00ff7f80'),
    '{"$ref":"c","$id":{"$oid":"0123456789abcdef00ff7f80"}}',
  ],
  ['MinKey', minKey, '{"$minKey":1}'],
  ['MaxKey', maxKey, '{"$maxKey":1}'],
  ['a date', date(1_709_251_199_999n), '"2024-02-29T23:59:59.999Z"'],
  ['a date before 1970', date(-1n), '"1969-12-31T23:59:59.999Z"'],
  ['the first date of the year 0', date(-62_167_219_200_000n), '"0000-01-01T00:00:00.000Z"'],
  ['the last date before the year 0', date(-62_167_219_200_001n), '"-000001-12-31T23:59:59.999Z"'],
  ['the last date of four digits', date(253_402_300_799_999n), '"9999-12-31T23:59:59.999Z"'],
  ['a date after 9999', date(253_402_300_800_000n), '"+010000-01-01T00:00:00.000Z"'],
  ["JavaScript's last date", date(8_640_000_000_000_000n), '"+275760-09-13T00:00:00.000Z"'],
  ["JavaScript's first date", date(-8_640_000_000_000_000n), '"-271821-04-20T00:00:00.000Z"'],
  ['a later date', date(8_640_000_000_000_001n), '{"$date":{"$numberLong":"8640000000000001"}}'],
  ['the earliest date', date(-(2n ** 63n)), '{"$date":{"$numberLong":"-9223372036854775808"}}'],
  ['an empty document', object([]), '{}'],
  ['an empty array', array([]), '[]'],
];

for (const [what, value, json] of VALUES) test(`${what} is written ${json}`, () => givesValue(value, json));

test('strings and keys are escaped as JSON.stringify escapes them', () => {
  const controls = String.fromCharCode(...Array.from({ length: 32 }, (_, i) => i));
  const texts = [
    '',
    'plain',
    '"\\/',
    controls,
    '\x7f\u0080\u2028\u2029\ufeff',
    'ключ 語 😀',
    '\ufeffmark at the start',
  ];
  for (const text of texts) {
    for (let pad = 0; pad <= 17; pad++) {
      const padded = 'a'.repeat(pad) + text + 'z'.repeat(17 - pad);
      givesValue(string(padded), JSON.stringify(padded));
      const name = padded.replaceAll('\0', '');
      gives(row(1, [[name, int32(2)]]), `{"id":1,${JSON.stringify(name)}:2}`);
    }
  }
});

test('lone surrogates become U+FFFD, however they are encoded', () => {
  givesValue(string(Buffer.from([0x61, 0xed, 0xa0, 0x80, 0x62])), '"a\ufffd\ufffd\ufffdb"');
  gives(BSON.serialize({ _id: 1, v: '\ud800' }) as Buffer, '{"id":1,"v":"\ufffd"}');
});

const NESTED: readonly Field[] = [
  ['b', int32(1)],
  ['_id', int32(2)],
  ['id', int32(3)],
];
const NAMED: readonly Field[] = [
  ['b', int32(1)],
  ['10', int32(2)],
  ['__proto__', int32(3)],
  ['constructor', int32(4)],
  ['b', int32(5)],
];

const ROWS: readonly (readonly [what: string, fields: readonly Field[], json: string])[] = [
  [
    'of which the key comes first, wherever it is stored',
    [
      ['a', int32(1)],
      ['_id', string('x')],
      ['b', int32(2)],
    ],
    '{"id":"x","a":1,"b":2}',
  ],
  [
    'whose key is an object',
    [
      ['a', array([object([])])],
      ['_id', object([['x', array([int32(1)])]])],
    ],
    '{"id":{"x":[1]},"a":[{}]}',
  ],
  ['whose key is code', [['_id', code('f')]], '{"id":{"$code":"f"}}'],
  ['whose key is null', [['_id', nullValue]], '{"id":null}'],
  [
    'with a field id, whose key is shown as _id',
    [
      ['id', object([['_id', int32(5)]])],
      ['_id', int32(1)],
    ],
    '{"_id":1,"id":{"_id":5}}',
  ],
  [
    'with two fields _id, of which the first is the key, and two fields id',
    [
      ['a', int32(0)],
      ['_id', int32(1)],
      ['_id', int32(2)],
      ['id', code('f')],
      ['b', int32(4)],
      ['id', nullValue],
    ],
    '{"_id":1,"a":0,"id":{"$code":"f"},"b":4,"id":null}',
  ],
  [
    'with a name that begins as id does',
    [
      ['_id', int32(1)],
      ['idx', int32(1)],
    ],
    '{"id":1,"idx":1}',
  ],
  [
    'whose nested fields _id and id keep their names and places',
    [
      ['_id', int32(1)],
      ['a', object(NESTED)],
      ['b', array([object(NESTED)])],
    ],
    '{"id":1,"a":{"b":1,"_id":2,"id":3},"b":[{"b":1,"_id":2,"id":3}]}',
  ],
  [
    'whose fields keep their order, also numbers, and a name that is stored twice',
    [['_id', int32(1)], ...NAMED, ['o', object(NAMED)]],
    '{"id":1,"b":1,"10":2,"__proto__":3,"constructor":4,"b":5,"o":{"b":1,"10":2,"__proto__":3,"constructor":4,"b":5}}',
  ],
];

for (const [what, fields, json] of ROWS)
  test(`a row ${what}, is written ${json}`, () => gives(document(fields), json));

test('the names in an array are ignored', () => {
  const body = document([
    ['x', int32(1)],
    ['', int32(2)],
    ['a longer name than any', object([['k', nullValue]])],
  ]);
  givesValue({ type: 4, bytes: body }, '[1,2,{"k":null}]');
});

test("180 levels, MongoDB's maximum, are written, 181 are an error", () => {
  const nested = (levels: number): Buffer => {
    let inner: Value = int32(7);
    for (let i = 1; i < levels; i++) inner = i % 2 ? object([['a', inner]]) : array([inner]);
    return row(1, [['v', inner]]);
  };
  const text = transcode(wasm, slots, [nested(180)]);
  assert.equal(text, `${itemToJson(nested(180))}\n`);
  assert.equal(text.split(/[[{]/).length - 1, 180);
  assert.throws(() => transcode(wasm, slots, [nested(181)]), /The row {"id":1} .* 180 levels/);
  for (const toJson of [itemToJson, rowToJson]) assert.throws(() => toJson(nested(181)), /180 levels/);
});

test('a row without _id is an error that names the row', () => {
  const rows = [row(1, []), row(2, []), document([['id', int32(1)]])];
  assert.throws(() => transcode(wasm, slots, rows), /it has no _id/);
  assert.throws(() => transcode(javascriptTranscoder, slots, rows), /no _id/);
});

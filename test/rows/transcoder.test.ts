import assert from 'node:assert/strict';
import { test } from 'node:test';
import { itemToJson } from '../support/rows/item-json.ts';
import { javascriptTranscoder } from '../support/rows/javascript-transcoder.ts';
import { rowToJson } from '../../src/rows/row-json.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import { BSON, Decimal128 } from '../../src/store/bson.ts';
import { Slots } from '../../src/store/slots.ts';
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
const day = (iso: string) => date(BigInt(Date.parse(iso)));

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
  ['an empty document', object([]), '{}'],
  ['an empty array', array([]), '[]'],
];

for (const [what, value, json] of VALUES) test(`${what} is written ${json}`, () => givesValue(value, json));

test('doubles and Int32 are written as JSON.stringify writes them, Decimal128 as its own toString', () => {
  const numbers = [
    0,
    -0,
    1.5,
    1e300,
    123456789.123,
    1 / 3,
    1e15 + 0.3,
    4294967295.99,
    4294967296.01,
    99999.995,
  ];
  for (const value of numbers) givesValue(double(value), JSON.stringify(value));
  for (let exponent = 0; exponent < 32; exponent++) {
    for (const value of [2 ** exponent - 1, -(2 ** exponent), 10 ** Math.min(exponent, 9)]) {
      givesValue(int32(value | 0), String(value | 0));
      givesValue(double(value / 1000), JSON.stringify(value / 1000));
    }
  }
  for (let exponent = -20; exponent <= 3; exponent++) {
    for (const digits of '0 7 10 18446744073709551615 10000000000000000000 18446744073709551616'.split(' ')) {
      const { bytes } = Decimal128.fromString(`-${digits}E${exponent}`);
      givesValue(decimal128(bytes), new Decimal128(bytes).toString());
    }
  }
});

test('dates are written as toISOString writes them, also before 1970, before the year 0 and after 9999', () => {
  givesValue(day('2024-02-29T23:59:59.999Z'), '"2024-02-29T23:59:59.999Z"');
  givesValue(date(-1n), '"1969-12-31T23:59:59.999Z"');
  givesValue(date(-62_167_219_200_000n), '"0000-01-01T00:00:00.000Z"');
  givesValue(date(-62_167_219_200_001n), '"-000001-12-31T23:59:59.999Z"');
  givesValue(date(253_402_300_799_999n), '"9999-12-31T23:59:59.999Z"');
  givesValue(date(253_402_300_800_000n), '"+010000-01-01T00:00:00.000Z"');
  givesValue(date(8_640_000_000_000_000n), '"+275760-09-13T00:00:00.000Z"');
  givesValue(date(-8_640_000_000_000_000n), '"-271821-04-20T00:00:00.000Z"');
});

test('each day of four centuries and at the edges of centuries has the right date', () => {
  const days = Array.from({ length: 146_097 }, (_, i) => (i - 25_567) * 86_400_000);
  for (let year = -20_000; year <= 20_000; year += 100)
    days.push(Date.UTC(year, 1, 28), Date.UTC(year, 2, 0));
  const bytes = row(1, [['v', array(days.map((ms) => date(BigInt(ms))))]]);
  const expected = JSON.stringify({ id: 1, v: days.map((ms) => new Date(ms)) });
  assert.ok(transcode(wasm, slots, [bytes], 1 << 20) === `${expected}\n`);
});

test("dates outside JavaScript's range are Extended JSON", () => {
  givesValue(date(8_640_000_000_000_001n), '{"$date":{"$numberLong":"8640000000000001"}}');
  givesValue(date(-(2n ** 63n)), '{"$date":{"$numberLong":"-9223372036854775808"}}');
});

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

test('_id is written first as id, wherever it is stored, whatever its type', () => {
  gives(
    document([
      ['a', int32(1)],
      ['_id', string('x')],
      ['b', int32(2)],
    ]),
    '{"id":"x","a":1,"b":2}',
  );
  gives(
    document([
      ['a', int32(1)],
      ['_id', object([['x', array([int32(1)])]])],
    ]),
    '{"id":{"x":[1]},"a":1}',
  );
  gives(
    document([
      ['a', array([object([])])],
      ['_id', code('f')],
    ]),
    '{"id":{"$code":"f"},"a":[{}]}',
  );
  gives(document([['_id', nullValue]]), '{"id":null}');
});

test('a row with a field id shows its key as _id, and of two fields _id the first', () => {
  gives(
    row(1, [
      ['id', string('own')],
      ['a', int32(1)],
    ]),
    '{"_id":1,"id":"own","a":1}',
  );
  gives(
    document([
      ['id', object([['_id', int32(5)]])],
      ['_id', int32(1)],
    ]),
    '{"_id":1,"id":{"_id":5}}',
  );
  gives(
    document([
      ['a', int32(0)],
      ['_id', int32(1)],
      ['_id', int32(2)],
      ['id', int32(3)],
      ['b', int32(4)],
      ['id', nullValue],
    ]),
    '{"_id":1,"a":0,"id":3,"b":4,"id":null}',
  );
  gives(row(1, [['id', code('f')]]), '{"_id":1,"id":{"$code":"f"}}');
  gives(row(1, [['idx', int32(1)]]), '{"id":1,"idx":1}');
});

test('a nested _id and a nested id keep their names and places', () => {
  const nested: Field[] = [
    ['b', int32(1)],
    ['_id', int32(2)],
    ['id', int32(3)],
  ];
  gives(row(1, [['a', object(nested)]]), '{"id":1,"a":{"b":1,"_id":2,"id":3}}');
  gives(row(1, [['a', array([object(nested)])]]), '{"id":1,"a":[{"b":1,"_id":2,"id":3}]}');
});

test('fields keep their stored order, also names like 1, and a name stored twice is written twice', () => {
  const fields: Field[] = [
    ['b', int32(1)],
    ['10', int32(2)],
    ['2', int32(3)],
    ['a', int32(4)],
    ['b', int32(5)],
  ];
  gives(row(1, fields), '{"id":1,"b":1,"10":2,"2":3,"a":4,"b":5}');
  gives(row(1, [['o', object(fields)]]), '{"id":1,"o":{"b":1,"10":2,"2":3,"a":4,"b":5}}');
  gives(
    row(1, [
      ['__proto__', int32(1)],
      ['constructor', int32(2)],
    ]),
    '{"id":1,"__proto__":1,"constructor":2}',
  );
});

test('a text that looks like a placeholder of the serializer is written unchanged', () => {
  const fields: Field[] = [
    ['1', string('~0~=5')],
    ['~1~7/x', string('"~2~=5')],
    ['n', int64(2n ** 60n)],
  ];
  gives(row(1, fields), '{"id":1,"1":"~0~=5","~1~7/x":"\\"~2~=5","n":1152921504606846976}');
});

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

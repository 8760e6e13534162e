import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { test } from 'node:test';
import { itemToJson } from '../support/rows/item-json.ts';
import { read } from '../support/import/import-reading.ts';

/** Objects whose names are those of Extended JSON, and whose content is wrong. */
const WRONG_TYPES = [
  '{"$binary":{"base64":"not base64!","subType":"00"}}',
  '{"$binary":{"base64":"QR==","subType":"00"}}',
  '{"$binary":{"base64":"AQI=","subType":"xyz"}}',
  '{"$binary":{"base64":"AQI=","subType":"00","more":1}}',
  '{"$binary":"AQI=","$type":0}',
  '{"$binary":5}',
  '{"$regularExpression":{"pattern":"a","options":"","unrelated":true}}',
  '{"$regularExpression":{"pattern":"a"}}',
  '{"$numberDouble":"1e999"}',
  '{"$numberInt":"x"}',
  `{"$numberLong":"${2n ** 63n}"}`,
  '{"$minKey":true}',
  '{"$maxKey":"1"}',
  '{"$timestamp":{"t":-1,"i":0}}',
  '{"$timestamp":{"t":1,"i":4294967296}}',
  '{"$symbol":5}',
  '{"$code":"f()","$scope":5}',
  '{"$oid":"xyz"}',
  '{"$uuid":"x"}',
  ...['garbage', '2024-13-01T00:00:00Z', '2024-02-30T00:00:00Z', '2024-02-03T24:00:00Z'].map(dated),
  ...['2024-02-03T00:00:00+25:00', '2024-01-01T00:00:00'].map(dated),
  '{"$date":{"$numberLong":"99999999999999999"}}',
];

function dated(time: string): string {
  return `{"$date":"${time}"}`;
}

/** Values that no document can have, each with its reason. */
const WRONG_VALUES: [value: string, reason: RegExp][] = [
  ...WRONG_TYPES.map((value): [string, RegExp] => [value, /is not a valid Extended JSON value/]),
  ['{"$oid":"65a1b2c3d4e5f60718293a4b","more":1}', /"\$oid" begins with \$/],
  ['{"$date":{"$numberLong":"5","more":1}}', /"\$numberLong" begins with \$/],
  ['{"$undefined":true}', /"\$undefined" begins with \$/],
  ['{"$dbPointer":{"$ref":"a","$id":{"$oid":"65a1b2c3d4e5f60718293a4b"}}}', /"\$dbPointer" begins with \$/],
  ['{"$ref":"people"}', /"\$ref" begins with \$/],
  ['[{"$b":1}]', /"\$b" begins with \$/],
  ['{"b":1,"$c":1}', /"\$c" begins with \$/],
  ['{"__proto__":{"b":1}}', /"__proto__" is not allowed/],
  [`${'['.repeat(32)}${']'.repeat(32)}`, /deeper than 32 levels/],
  ['"\\ud800"', /half of a surrogate pair/],
  ['9'.repeat(35), /field "a": .* cannot be stored with all its digits/],
  [`[1.${'9'.repeat(35)}]`, /field "a": .* cannot be stored with all its digits/],
  ['1e-7000', /field "a": .* cannot be stored with all its digits/],
];

const GOOD = '{"id":"g","category":"c","price":1}';
/** Rows that are bad as a line of NDJSON and as an element of an array. */
const JSON_FAULTS: [row: string, reason: RegExp][] = [
  ...WRONG_VALUES.map(([value, reason]): [string, RegExp] => [
    `{"category":"c","price":1,"a":[${value}]}`,
    reason,
  ]),
  ['[1]', /the row is not a JSON object/],
  ['null', /the row is not a JSON object/],
  ['{"price":1}', /category is missing, expected a string/],
  ['{"category":5,"price":1}', /category is 5, expected a string/],
  ['{"category":"c"}', /price is missing, expected a finite number/],
  ['{"category":"c","price":"1"}', /price is of BSON type string, expected a finite number/],
  ['{"category":"c","price":null}', /price is of BSON type null/],
  ['{"category":"c","price":1e999}', /field "price": a number is too large to be stored/],
  ['{"category":"c","price":{"$numberDouble":"NaN"}}', /price is NaN, expected a finite number/],
  ['{"id":null,"category":"c","price":1}', /the id is null, an array, or of another type/],
  ['{"id":"","category":"c","price":1}', /the id is empty/],
  ['{"id":[1],"category":"c","price":1}', /the id is null, an array/],
  [`{"id":"${'i'.repeat(257)}","category":"c","price":1}`, /the id has 257 bytes/],
  ['{"category":"c","price":1,"$a":1}', /"\$a" begins with \$/],
  ['{"category":"c","price":1,"a\\u0000":1}', /"a\\u0000" contains a NUL character/],
  [`{"category":"c","price":0.${'9'.repeat(35)}}`, /field "price": .* cannot be stored with all its digits/],
];

test('A JSON row that cannot be stored is refused with its position and its reason, and the others are read', async () => {
  for (const [row, reason] of JSON_FAULTS) {
    const lines = await read(`${GOOD}\n\n${row}\r\n${GOOD}`, 'ndjson');
    assert.deepEqual([lines.error, lines.unit, lines.items.length], [undefined, 'line', 2], row);
    assert.match(lines.bad.join('\n'), new RegExp(`^3: .*${reason.source}`), row);
    const array = await read(`[${GOOD},${row} ,\n${GOOD}]`, 'json');
    assert.deepEqual([array.error, array.unit, array.items.length], [undefined, 'row', 2], row);
    assert.match(array.bad.join('\n'), new RegExp(`^2: .*${reason.source}`), row);
  }
});

test('Of a name that an object has twice, the last value counts, and all else stays as it is', async () => {
  const columns = { category: null, price: null, id: null };
  for (const [text, expected] of [
    ['{"_id":1,"a":1,"b":":\\\\","a":2}', '{"_id":1,"a":2,"b":":\\\\"}'],
    [
      '{"_id":1,"a":1,"\\u0061":[1.50,{"x" :1,"x":{"10":1,"a":2,"9":":3"}}]}',
      '{"_id":1,"a":[1.5,{"x":{"10":1,"a":2,"9":":3"}}]}',
    ],
    ['{"id":1,"v":12345678901234567890123,"id":2}', '{"_id":2,"v":12345678901234567890123}'],
    [
      '{"_id":1,"v":0.12345678901234567890,"w\\"":1,"w\\"":{"$numberLong":"5"}}',
      '{"_id":1,"v":0.12345678901234567890,"w\\"":5}',
    ],
    ['{"_id":1,"v":{"#":1,"#":"2"},"__x":-0,"__x":1E5}', '{"_id":1,"v":{"#":"2"},"__x":100000}'],
  ] as const) {
    const got = await read(text, 'ndjson', { columns });
    const wanted = await read(expected, 'ndjson', { columns });
    assert.deepEqual([got.bad, got.error, wanted.bad, wanted.documents.length], [[], undefined, [], 1], text);
    const shown = (document: Uint8Array | undefined) => itemToJson(document ?? assert.fail());
    assert.equal(shown(got.documents[0]), shown(wanted.documents[0]), text);
    const array = await read(`[${text}]`, 'json', { columns });
    assert.deepEqual(array.documents, got.documents);
  }
});

test('A text of megabytes with escapes is read, and a fault in it is found', async () => {
  const columns = { category: null, price: null, id: null };
  const text = '\\u00fc\\n'.repeat(1_200_000);
  const { items, bad } = await read(`{"_id":1,"v":"${text}"}\n{"_id":2,"v":"${text}\\x"}`, 'ndjson', {
    columns,
  });
  assert.deepEqual([items.length, bad.length, (items[0]?.v as string).length], [1, 1, 2_400_000]);
  assert.match(bad[0] ?? '', /^2: the line is not valid JSON at character 9600016: .*got "x"/);
});

test('Bytes that are not UTF-8 make their row bad, in texts, in names and between values', async () => {
  const broken = [[0xff], [0xc0, 0x80], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80]];
  for (const bytes of broken)
    for (const [before, behind] of [
      ['{"_id":1,"v":"', '"}'],
      ['{"_id":1,"', '":1}'],
      ['{"_id":1', '}'],
    ]) {
      const line = Buffer.concat([Buffer.from(before ?? ''), Buffer.from(bytes), Buffer.from(behind ?? '')]);
      assert.equal(isUtf8(line), false);
      const columns = { category: null, price: null, id: null };
      const { bad } = await read(line, 'ndjson', { columns });
      assert.deepEqual(bad, ['1: the row is not valid UTF-8']);
      const content = Buffer.concat([Buffer.from('[{"_id":0},'), line, Buffer.from(',{"_id":2}]')]);
      const array = await read(content, 'json', { columns, chunk: 5 });
      assert.deepEqual([array.items.length, array.bad], [2, ['2: the row is not valid UTF-8']]);
    }
});

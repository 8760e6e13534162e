import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BrokenSource } from '../../src/import/row.ts';
import { read } from '../support/import/import-reading.ts';

/** Values of Extended JSON that are wrong, each with its reason. */
const WRONG_VALUES: [value: string, reason: RegExp][] = [
  ['{"$binary":{"base64":"not base64!","subType":"00"}}', /the base64 is not valid/],
  ['{"$binary":{"base64":"QR==","subType":"00"}}', /the base64 is not valid/],
  ['{"$binary":{"base64":"AQI=","subType":"xyz"}}', /wrong form/],
  ['{"$binary":{"base64":"AQI=","subType":"00","more":1}}', /wrong form/],
  ['{"$binary":"AQI=","$type":0}', /wrong form/],
  ['{"$regularExpression":{"pattern":"a","options":"","unrelated":true}}', /wrong form/],
  ['{"$regularExpression":{"pattern":"a"}}', /wrong form/],
  ['{"$oid":"65a1b2c3d4e5f60718293a4b","more":1}', /"\$oid" has the unknown member "more"/],
  ['{"$numberDouble":"1e999"}', /beyond a double/],
  ['{"$minKey":true}', /wrong form/],
  ['{"$maxKey":"1"}', /wrong form/],
  ['{"$timestamp":{"t":-1,"i":0}}', /wrong form/],
  ['{"$timestamp":{"t":1,"i":4294967296}}', /wrong form/],
  ['{"$date":{"$numberLong":"5","more":1}}', /"\$numberLong" has the unknown member "more"/],
  ['{"$symbol":5}', /wrong form/],
  ['{"$code":"f()","$scope":5}', /wrong form/],
  ['{"$undefined":true}', /\$undefined is a type of BSON that is no longer used/],
  ['{"$dbPointer":{"$ref":"a","$id":{"$oid":"65a1b2c3d4e5f60718293a4b"}}}', /\$dbPointer is a type of BSON/],
  ['{"$ref":"people"}', /"\$ref" begins with \$/],
  ['{"$ref":"people","$id":1,"$else":1}', /"\$else" begins with \$/],
];

const GOOD = '{"id":"g","category":"c","price":1}';
/** Rows that are bad as a line of NDJSON and as an element of an array. */
const JSON_FAULTS: [name: string, row: string, reason: RegExp][] = [
  ...WRONG_VALUES.map(([value, reason]): [string, string, RegExp] => [
    `the value ${value}`,
    `{"category":"c","price":1,"a":[${value}]}`,
    reason,
  ]),
  ['an array in place of an object', '[1]', /the row is not a JSON object/],
  ['null in place of an object', 'null', /the row is not a JSON object/],
  ['no category', '{"price":1}', /the row has no category/],
  ['a category that is not a string', '{"category":5,"price":1}', /the category is 5; expected a string/],
  ['no price', '{"category":"c"}', /the row has no price/],
  ['a price that is a string', '{"category":"c","price":"1"}', /the price is the string "1"/],
  ['a price that is null', '{"category":"c","price":null}', /the price is null/],
  [
    'a price that is infinite',
    '{"category":"c","price":1e999}',
    /field "price": a number is too large to be stored/,
  ],
  [
    'a wrapped price that is infinite',
    '{"category":"c","price":{"$numberDouble":"NaN"}}',
    /the price is NaN/,
  ],
  ['an id that is null', '{"id":null,"category":"c","price":1}', /the id is null/],
  ['an id that is empty', '{"id":"","category":"c","price":1}', /the id is empty/],
  [
    'an id that is a fraction',
    '{"id":1.5,"category":"c","price":1}',
    /the id is 1\.5; expected a string, an integer/,
  ],
  ['an id that is an object', '{"id":{"a":1},"category":"c","price":1}', /the id is an object/],
  ['an id that is too long', `{"id":"${'i'.repeat(257)}","category":"c","price":1}`, /the id has 257 bytes/],
  ['a name with $', '{"category":"c","price":1,"$a":1}', /"\$a" begins with \$/],
  ['a nested name with $', '{"category":"c","price":1,"a":[{"$b":1}]}', /"\$b" begins with \$/],
  ['a name with $ behind others', '{"category":"c","price":1,"a":{"b":1,"$c":1}}', /"\$c" begins with \$/],
  ['a name with NUL', '{"category":"c","price":1,"a\\u0000":1}', /"a\\u0000" contains a NUL character/],
  ['__proto__', '{"category":"c","price":1,"a":{"__proto__":{"b":1}}}', /"__proto__" is not allowed/],
  ['33 levels', `{"category":"c","price":1,"a":${'['.repeat(32)}${']'.repeat(32)}}`, /deeper than 32 levels/],
  ['half a surrogate pair', '{"category":"c","price":1,"a":"\\ud800"}', /half of a surrogate pair/],
  [
    '35 digits',
    `{"category":"c","price":1,"a":${'9'.repeat(35)}}`,
    /field "a": .* cannot be stored with all its digits/,
  ],
  [
    '35 digits after the point',
    `{"category":"c","price":1,"a":[1.${'9'.repeat(35)}]}`,
    /field "a": .* cannot be stored with all its digits/,
  ],
  [
    '35 digits as its price',
    `{"category":"c","price":0.${'9'.repeat(35)}}`,
    /field "price": .* cannot be stored with all its digits/,
  ],
  [
    'a number too small for any',
    '{"category":"c","price":1,"a":1e-7000}',
    /field "a": .* cannot be stored with all its digits/,
  ],
  [
    'a name given twice',
    '{"category":"c","price":1,"a":1,"b":":\\\\","a":2}',
    /the name "a" appears twice in one object/,
  ],
  [
    'a name given twice, once escaped',
    '{"category":"c","price":1,"a":1,"\\u0061":2}',
    /the name "a" appears twice in one object/,
  ],
  [
    'a nested name given twice',
    '{"category":"c","price":1,"a":[{"b\\"":1,"b\\"":1}]}',
    /the name .* appears twice/,
  ],
  ['an id given twice', '{"id":1,"category":"c","price":1,"id":2}', /the name "id" appears twice/],
  ['an invalid $oid', '{"category":"c","price":1,"a":{"$oid":"xyz"}}', /not a valid Extended JSON value/],
  [
    'an invalid $date',
    '{"category":"c","price":1,"a":{"$date":"garbage"}}',
    /not a valid Extended JSON value/,
  ],
  [
    'a $date with month 13',
    '{"category":"c","price":1,"a":{"$date":"2024-13-01T00:00:00Z"}}',
    /the date is not a day of the calendar/,
  ],
  [
    'a $date on February 30',
    '{"category":"c","price":1,"a":{"$date":"2024-02-30T00:00:00Z"}}',
    /the date is not a day of the calendar/,
  ],
  [
    'a $date at 24 hours',
    '{"category":"c","price":1,"a":{"$date":"2024-02-03T24:00:00Z"}}',
    /the date is not a time of a day/,
  ],
  [
    'a $date in a zone that does not exist',
    '{"category":"c","price":1,"a":{"$date":"2024-02-03T00:00:00+25:00"}}',
    /the date has no valid zone/,
  ],
  [
    'a $date without a time zone',
    '{"category":"c","price":1,"a":{"$date":"2024-01-01T00:00:00"}}',
    /not a valid Extended JSON/,
  ],
  [
    'a $date too late',
    '{"category":"c","price":1,"a":{"$date":{"$numberLong":"99999999999999999"}}}',
    /the date is not valid/,
  ],
  [
    'a $numberInt that is not a number',
    '{"category":"c","price":1,"a":{"$numberInt":"x"}}',
    /not a valid Extended JSON value/,
  ],
  [
    'a $numberLong beyond int64',
    `{"category":"c","price":1,"a":{"$numberLong":"${2n ** 63n}"}}`,
    /more than 64 bits/,
  ],
  ['an invalid $uuid', '{"category":"c","price":1,"a":{"$uuid":"x"}}', /not a valid Extended JSON value/],
  ['an invalid $binary', '{"category":"c","price":1,"a":{"$binary":5}}', /not a valid Extended JSON value/],
];

for (const [name, row, reason] of JSON_FAULTS) {
  test(`A JSON row with ${name} is refused with its position, and the others are read`, async () => {
    const lines = await read(`${GOOD}\n\n${row}\r\n${GOOD}`, 'ndjson');
    assert.deepEqual([lines.error, lines.unit, lines.items.length], [undefined, 'line', 2]);
    assert.match(lines.bad.join('\n'), new RegExp(`^3: .*${reason.source}`));
    const array = await read(`[${GOOD},${row} ,\n${GOOD}]`, 'json');
    assert.deepEqual([array.error, array.unit, array.items.length], [undefined, 'row', 2]);
    assert.match(array.bad.join('\n'), new RegExp(`^2: .*${reason.source}`));
  });
}

test('An NDJSON line that is not JSON, not UTF-8 or truncated is refused with its line number', async () => {
  const content = Buffer.concat([
    Buffer.from(`\ufeff${GOOD}\n{"id":\u001b[31m}\n \t\r\n`),
    Buffer.from('{"category":"'),
    Buffer.of(0xc3, 0x28),
    Buffer.from(`","price":1}\n${GOOD}\n{"id":"z","category":"c","pri`),
  ]);
  const { items, bad } = await read(content, 'ndjson');
  assert.equal(items.length, 2);
  assert.deepEqual(
    bad.map((text) => text.slice(0, 18)),
    ['2: the line is not', '4: the row is not ', '6: the line is not'],
  );
});

test('An array element that is not UTF-8 is refused, and the others are read', async () => {
  const bad = Buffer.concat([Buffer.from('{"category":"'), Buffer.of(0xff), Buffer.from('","price":1}')]);
  const fine = '{"id":"f","category":"\ufffd é","price":1}';
  const content = Buffer.concat([Buffer.from(`[${fine},`), bad, Buffer.from(`,${GOOD},${GOOD}]`)]);
  for (const chunk of [65_536, 1, 5]) {
    const outcome = await read(content, 'json', { chunk });
    assert.equal(outcome.error, undefined);
    if (chunk === 65_536) assert.ok(outcome.bad.includes('2: the row is not valid UTF-8'));
    else assert.deepEqual(outcome.bad, ['2: the row is not valid UTF-8']);
  }
});

const BROKEN: [name: string, content: string | Buffer, error: RegExp, rows: number][] = [
  ['An empty JSON file', ' ', /the file is empty; expected a JSON array, or one JSON object per line/, 0],
  ['JSON that is not an array', '5', /begins with "5"; expected a JSON array/, 0],
  ['A truncated JSON array', '[{"id":1,"category":"a","price":1},{"id":2', /cut off after row 1/, 1],
  [
    'A JSON array with a syntax error',
    '[{"id":1,"category":"a","price":1}, {"id":2,"category":"b","price":2}, {"id":x}]',
    /invalid in or after row 3/,
    2,
  ],
  ['Text after a JSON array', '[{"id":1,"category":"a","price":1}] x', /invalid in or after row 2/, 1],
  ['A JSON array nested 100,000 levels deep', '['.repeat(100_000), /cut off after row 0/, 0],
];

for (const [name, content, expected, rows] of BROKEN) {
  test(`${name} ends the run, and the rows before the fault are kept`, async () => {
    for (const chunk of [65_536, 1]) {
      const { error, items } = await read(content, 'json', { chunk });
      assert.ok(error instanceof BrokenSource, String(error?.stack));
      assert.match(error.message, expected);
      assert.equal(items.length, rows);
    }
  });
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BrokenSource } from '../src/import/row.ts';
import { read } from './support/import-reading.ts';

const GOOD = '{"id":"g","category":"c","price":1}';
/** Rows that are bad as a line of NDJSON and as an element of an array. */
const JSON_FAULTS: [name: string, row: string, reason: RegExp][] = [
  ['no object', '[1]', /it is not a JSON object/],
  ['null', 'null', /it is not a JSON object/],
  ['no category', '{"price":1}', /it has no category/],
  ['a category that is no text', '{"category":5,"price":1}', /its category is 5; expected a text/],
  ['no price', '{"category":"c"}', /it has no price/],
  ['a price that is text', '{"category":"c","price":"1"}', /its price is the text "1"/],
  ['a price that is null', '{"category":"c","price":null}', /its price is null/],
  ['a price that is infinite', '{"category":"c","price":1e999}', /a number larger than any/],
  [
    'a wrapped price that is infinite',
    '{"category":"c","price":{"$numberDouble":"NaN"}}',
    /its price is NaN/,
  ],
  ['an id that is null', '{"id":null,"category":"c","price":1}', /its id is null/],
  ['an id that is empty', '{"id":"","category":"c","price":1}', /its id is empty/],
  ['an id that is a fraction', '{"id":1.5,"category":"c","price":1}', /its id is 1\.5; expected/],
  ['an id that is an object', '{"id":{"a":1},"category":"c","price":1}', /its id is an object/],
  ['an id that is too long', `{"id":"${'i'.repeat(257)}","category":"c","price":1}`, /its id has 257 bytes/],
  ['a name with $', '{"category":"c","price":1,"$a":1}', /"\$a" begins with \$/],
  ['a nested name with $', '{"category":"c","price":1,"a":[{"$b":1}]}', /"\$b" begins with \$/],
  ['a name with $ behind others', '{"category":"c","price":1,"a":{"b":1,"$c":1}}', /"\$c" begins with \$/],
  ['a name with NUL', '{"category":"c","price":1,"a\\u0000":1}', /"a\\u0000" holds a NUL/],
  ['__proto__', '{"category":"c","price":1,"a":{"__proto__":{"b":1}}}', /"__proto__" is not allowed/],
  ['33 levels', `{"category":"c","price":1,"a":${'['.repeat(32)}${']'.repeat(32)}}`, /deeper than 32 levels/],
  ['half a surrogate pair', '{"category":"c","price":1,"a":"\\ud800"}', /half a surrogate pair/],
  ['_bsontype', '{"category":"c","price":1,"a":{"_bsontype":"ObjectId"}}', /cannot be written as BSON/],
  ['35 digits', `{"category":"c","price":1,"a":${'9'.repeat(35)}}`, /in its field "a": .* more digits than/],
  [
    '35 digits behind a point',
    `{"category":"c","price":1,"a":[1.${'9'.repeat(35)}]}`,
    /field "a": .* more digits than/,
  ],
  [
    '35 digits as its price',
    `{"category":"c","price":0.${'9'.repeat(35)}}`,
    /field "price": .* more digits than/,
  ],
  ['a number too small for any', '{"category":"c","price":1,"a":1e-7000}', /field "a": .* more digits than/],
  ['a name given twice', '{"category":"c","price":1,"a":1,"b":":\\\\","a":2}', /gives the name "a" twice/],
  [
    'a name given twice, once escaped',
    '{"category":"c","price":1,"a":1,"\\u0061":2}',
    /gives the name "a" twice/,
  ],
  ['a nested name given twice', '{"category":"c","price":1,"a":[{"b\\"":1,"b\\"":1}]}', /the name .* twice/],
  ['an id given twice', '{"id":1,"category":"c","price":1,"id":2}', /gives the name "id" twice/],
  ['a bad $oid', '{"category":"c","price":1,"a":{"$oid":"xyz"}}', /no Extended JSON value/],
  ['a bad $date', '{"category":"c","price":1,"a":{"$date":"garbage"}}', /no Extended JSON value/],
  ['a $date of no month', '{"category":"c","price":1,"a":{"$date":"2024-13-01T00:00:00Z"}}', /not a date/],
  [
    'a $date of no zone',
    '{"category":"c","price":1,"a":{"$date":"2024-01-01T00:00:00"}}',
    /no Extended JSON/,
  ],
  [
    'a $date too late',
    '{"category":"c","price":1,"a":{"$date":{"$numberLong":"99999999999999999"}}}',
    /not a date/,
  ],
  ['a $numberInt of text', '{"category":"c","price":1,"a":{"$numberInt":"x"}}', /no Extended JSON value/],
  [
    'a $numberLong over int64',
    `{"category":"c","price":1,"a":{"$numberLong":"${2n ** 63n}"}}`,
    /than 64 bits/,
  ],
  ['a bad $uuid', '{"category":"c","price":1,"a":{"$uuid":"x"}}', /no Extended JSON value/],
  ['a bad $binary', '{"category":"c","price":1,"a":{"$binary":5}}', /no Extended JSON value/],
];

for (const [name, row, reason] of JSON_FAULTS) {
  test(`JSON: a row with ${name} is told with its place, the others are read`, async () => {
    const lines = await read(`${GOOD}\n\n${row}\r\n${GOOD}`, 'ndjson');
    assert.deepEqual([lines.error, lines.unit, lines.items.length], [undefined, 'line', 2]);
    assert.match(lines.bad.join('\n'), new RegExp(`^3: .*${reason.source}`));
    const array = await read(`[${GOOD},${row} ,\n${GOOD}]`, 'json');
    assert.deepEqual([array.error, array.unit, array.items.length], [undefined, 'row', 2]);
    assert.match(array.bad.join('\n'), new RegExp(`^2: .*${reason.source}`));
  });
}

test('NDJSON: lines that are not JSON, not UTF-8 or cut off are told with their lines', async () => {
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
    ['2: it is not JSON:', '4: it is not valid', '6: it is not JSON:'],
  );
});

test('JSON: an element that is not UTF-8 is told, the others are read', async () => {
  const bad = Buffer.concat([Buffer.from('{"category":"'), Buffer.of(0xff), Buffer.from('","price":1}')]);
  const fine = '{"id":"f","category":"\ufffd é","price":1}';
  const content = Buffer.concat([Buffer.from(`[${fine},`), bad, Buffer.from(`,${GOOD},${GOOD}]`)]);
  for (const chunk of [65_536, 1, 5]) {
    const outcome = await read(content, 'json', { chunk });
    assert.equal(outcome.error, undefined);
    if (chunk === 65_536) assert.ok(outcome.bad.includes('2: it is not valid UTF-8'));
    else assert.deepEqual(outcome.bad, ['2: it is not valid UTF-8']);
  }
});

const BROKEN: [name: string, content: string | Buffer, error: RegExp, rows: number][] = [
  ['an empty JSON file', ' ', /was expected, or objects one a line; the file is empty/, 0],
  ['JSON that is no array', '5', /array was expected.*begins with "5"/, 0],
  ['a JSON array cut off', '[{"id":1,"category":"a","price":1},{"id":2', /cut off after row 1/, 1],
  [
    'a JSON array with a fault',
    '[{"id":1,"category":"a","price":1}, {"id":2,"category":"b","price":2}, {"id":x}]',
    /broken in or after row 3/,
    2,
  ],
  ['text behind a JSON array', '[{"id":1,"category":"a","price":1}] x', /broken in or after row 2/, 1],
  ['a JSON array nested without end', '['.repeat(100_000), /nested too deeply/, 0],
];

for (const [name, content, expected, rows] of BROKEN) {
  test(`${name} ends the run, with what came before kept`, async () => {
    for (const chunk of [65_536, 1]) {
      const { error, items } = await read(content, 'json', { chunk });
      assert.ok(error instanceof BrokenSource, String(error?.stack));
      assert.match(error.message, expected);
      assert.equal(items.length, rows);
    }
  });
}

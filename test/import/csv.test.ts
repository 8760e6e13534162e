import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Decimal128, type Document, Long } from '../../src/store/values/bson.ts';
import { COLUMNS, jsonItem, read } from '../support/import/import-reading.ts';

/** The one line of CSV under a header of these columns, as an item. */
async function csvItem(header: string, row: string, columns = COLUMNS): Promise<Document> {
  const { items, bad, error } = await read(`${header}\n${row}\n`, 'csv', { columns });
  assert.deepEqual({ bad, error }, { bad: [], error: undefined });
  const [item] = items;
  assert.ok(item);
  return item;
}

/** Cells that are numbers as JSON writes them. All of their digits are kept. */
const NUMBERS: Readonly<Record<string, number | Long | Decimal128>> = {
  '0': 0,
  '12': 12,
  '-3': -3,
  '0.3': 0.3,
  '0.30': 0.3,
  '-0.5': -0.5,
  '2147483648': 2147483648,
  '1e-05': 1e-5,
  '1.5e+20': 1.5e20,
  '0.30000000000000004': 0.30000000000000004,
  '9007199254740991': 9007199254740991,
  '0.1234567890123456': 0.1234567890123456,
  '1.50000000000000000000': 1.5,
  '9007199254740993': Long.fromString('9007199254740993'),
  '-9223372036854775808': Long.fromString('-9223372036854775808'),
  '1.00E+05': 100_000,
  '4.2E-06': 4.2e-6,
  '-1.5E+20': -1.5e20,
  '9223372036854775808': Decimal128.fromString('9223372036854775808'),
  '-18446744073709551615': Decimal128.fromString('-18446744073709551615'),
  '1234567890123456789012345678901234': Decimal128.fromString('1234567890123456789012345678901234'),
  '0.12345678901234567890': Decimal128.fromString('0.12345678901234567890'),
};
const TEXTS = '1e+400 1E-400 1e5 12E3 007 +5 .5 5. 0x10 NaN Infinity - true 2020-01-01 1.2.3';

test('A cell becomes a number when no digit is lost, otherwise it remains text', async () => {
  const texts = [...TEXTS.split(' '), `0.${'1'.repeat(35)}`, '9'.repeat(35), ' 5', '"1,000"'];
  const cells = [...Object.keys(NUMBERS), ...texts];
  const header = cells.map((_, n) => `c${n}`).join();
  const item = await csvItem(`id,category,price,${header}`, `1,a,1,${cells.join()}`);
  const values = cells.map((_, n) => item[`c${n}`] as unknown);
  assert.deepEqual(values, [...Object.values(NUMBERS), ...texts.map((text) => text.replaceAll('"', ''))]);
});

test('A column that stays text says why the first such cell is no number', async () => {
  for (const [cell, reason] of [
    ['01234', 'is not a number as JSON writes it'],
    ['1e5', 'may be a code: its exponent has no sign'],
    ['12E3', 'may be a code: its exponent has no sign'],
    ['9'.repeat(35), 'has more digits than a number keeps (a Decimal128 has 34)'],
    ['1E+400', 'is out of the range of a double'],
  ] as const) {
    const { described } = await read(`id,v\n1,${cell}\n`, 'csv', {
      columns: { category: null, price: null, id: null },
    });
    assert.equal(described[2], `  v: string ("${cell}" on line 2 ${reason})`);
  }
  for (const [cell, reason] of [
    ['18446744073709551615', 'is beyond Int64'],
    ['1.5', 'is not an integer'],
  ] as const) {
    const { described } = await read(`id,v\n1,2\n${cell},2\n`, 'csv', {
      columns: { category: null, price: null, id: null },
    });
    assert.equal(described[1], `  id: _id, string ("${cell}" on line 3 ${reason})`);
  }
});

test('A price cell keeps all its digits, and is refused with its column when they cannot be stored', async () => {
  const price = async (cell: string) => (await csvItem('id,category,price', `1,a,${cell}`)).price as unknown;
  assert.equal(await price(' +00.50 '), 0.5);
  for (const [cell, value] of [
    ['.5', 0.5],
    ['-.5', -0.5],
    ['5.', 5],
    ['5.e1', 50],
    ['007', 7],
  ] as const)
    assert.equal(await price(cell), value, cell);
  assert.equal(String(await price('+9007199254740993')), '9007199254740993');
  assert.equal(String(await price('-.12345678901234567890')), '-0.12345678901234567890');
  for (const digits of ['1.2345678901234567890', '12345678901234567890'])
    assert.equal(String(await price(digits)), digits);
  const { bad } = await read(`id,category,price\n1,a,0.${'3'.repeat(35)}\n`, 'csv');
  assert.match(bad.join(), /^2: column "price": the number .* cannot be stored with all its digits/);
});

test('With --id _id, a field id beside it remains a field', async () => {
  const columns = { ...COLUMNS, id: '_id' };
  const expected = { _id: 1, id: 'own', category: 'c', price: 2 };
  assert.deepEqual(await csvItem('_id,id,category,price', '1,own,c,2', columns), expected);
  assert.deepEqual(await jsonItem('{"_id":1,"id":"own","category":"c","price":2}', columns), expected);
});

test('A CSV cell becomes a field under its column name, and an empty cell becomes none', async () => {
  const item = await csvItem('id,category,price,name,stock,note', 'a1,toys,2.50,"a ""b"", c",007,');
  assert.deepEqual(item, { _id: 'a1', category: 'toys', price: 2.5, name: 'a "b", c', stock: '007' });
  assert.equal((await csvItem('id,category,price,name', '1,c,2,\0')).name, '\0');
});

test('A mapped column becomes the field and does not keep its own name', async () => {
  const columns = { category: 'cut', price: 'cost', id: 'sku' };
  const item = await csvItem('cut,id,price,cost,category,sku,x', 'fine,7,8,9,old,s1,1', columns);
  assert.deepEqual(Object.entries(item), [
    ['_id', 's1'],
    ['category', 'fine'],
    ['price', 9],
    ['x', 1],
  ]);
  const row = '{"cut":"fine","id":7,"price":8,"cost":9,"category":"old","sku":"s1","x":1}';
  assert.deepEqual(await jsonItem(row, columns), item);
});

const HEADER = 'id,category,price\n';
/** Contents of which one row is bad, its line and reason, and the number of good rows. oracles.test.ts has random ones. */
const CSV_FAULTS: [content: string | Buffer, bad: RegExp, good: number][] = [
  [`${HEADER}1,a\n2,b,3\n`, /^2: the row has 2 cells, but the header has 3$/, 1],
  [`${HEADER}1,a,2,x\n2,b,3\n`, /^2: the row has 4 cells, but the header has 3$/, 1],
  [`${HEADER}1,,2\n2,b,3\n`, /^2: category is missing/, 1],
  [`${HEADER}1,a,\n2,b,3\n`, /^2: price is missing/, 1],
  [`${HEADER}1,a,$5\n2,b,3\n`, /^2: column "price": "\$5" is not a number$/, 1],
  [`${HEADER}1,a,1e999\n2,b,3\n`, /^2: column "price": "1e999" is not a number$/, 1],
  [`${HEADER},a,1\n2,b,3\n`, /^2: column "id": the id is empty/, 1],
  [`${HEADER}${'é'.repeat(129)},a,1\n2,b,3\n`, /^2: the id has 258 bytes; the maximum is 256/, 1],
  [`${HEADER}1,a"b,2\n2,b,3\n`, /^2: a quote is misplaced or not closed$/, 1],
  [
    `${HEADER}1,"a,2\n2,b,3\n3,"c",4\n4,d,5\n`,
    /^2: a quote is misplaced or not closed; the row extends to line 4$/,
    1,
  ],
  [
    `${HEADER}1,a,2\n2,"b,3\n3,c,4\n`,
    /^3: a quote is not closed before the end of the file; the row extends to line 4$/,
    1,
  ],
  [
    Buffer.concat([Buffer.from(`${HEADER}1,a`), Buffer.of(0xff), Buffer.from(',2\n2,\ufffd,3\n')]),
    /^2: the row is not valid UTF-8; --encoding windows-1252 /,
    1,
  ],
  [`${HEADER}1,"a\nb\r\nc",2\n\n\nx\n2,b,3\n`, /^7: the row has 1 cells/, 2],
];

test('A bad CSV row is refused with its line and its reason, and the others are read', async () => {
  for (const [content, bad, good] of CSV_FAULTS)
    for (const chunk of [65_536, 1, 7]) {
      const outcome = await read(content, 'csv', { chunk });
      assert.deepEqual([outcome.error, outcome.unit, outcome.items.length], [undefined, 'line', good]);
      assert.equal(outcome.bad.length, 1, outcome.bad.join('\n'));
      assert.match(outcome.bad[0] ?? '', bad);
    }
});

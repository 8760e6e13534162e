import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SAMPLE_BYTES } from '../../src/import/read-table.ts';
import { booleansOf, dateFormOf } from '../../src/import/notation.ts';
import { numberNotationOf } from '../../src/import/number-notation.ts';
import { readRows } from '../../src/import/reading.ts';
import { BrokenSource } from '../../src/import/row.ts';
import { Decimal128, Long, ObjectId, UUID, type Document } from '../../src/store/values/bson.ts';
import { UsageError } from '../../src/terminal/arguments.ts';
import { inChunks, jsonItem, read, readingOf } from '../support/import/import-reading.ts';
import { eachRow } from '../support/import/each-row.ts';

type Options = Parameters<typeof read>[2];

const WITH_DECIMAL_COMMA = numberNotationOf({ hasDecimalComma: true });

/** The values of a column `v`, one for each row, in a file and in a pipe, which must be the same. */
async function valuesOf(cells: readonly string[], options: Options = {}): Promise<unknown[]> {
  const rows = cells.map((cell, n) => `${n}\tc\t${n}\t${cell && `"${cell.replaceAll('"', '""')}"`}\n`);
  const content = `id\tcategory\tprice\tv\n${rows.join('')}`;
  const [file, pipe] = await Promise.all(
    [true, false].map((isFile) => read(content, 'csv', { ...options, isFile })),
  );
  assert.ok(file && pipe);
  assert.equal(file.error, undefined);
  assert.deepEqual(file.bad, []);
  assert.deepEqual(file.items, pipe.items);
  return file.items.map(({ v }) => v as unknown);
}

const COLUMNS: [name: string, cells: string[], values: unknown[]][] = [
  ['of postal codes', ['12345', '01234'], ['12345', '01234']],
  ['of postal codes, the other way', ['01234', '12345'], ['01234', '12345']],
  ['of numbers', ['1', '-2.5', '1e-05', '0'], [1, -2.5, 1e-5, 0]],
  ['of numbers and empty cells', ['', '1', ''], [undefined, 1, undefined]],
  ['of numbers and one word', ['1', '2', 'n/a'], ['1', '2', 'n/a']],
  ['of large numbers', ['9007199254740993', '1'], [Long.fromString('9007199254740993'), 1]],
  ['of long fractions', ['0.12345678901234567890'], [Decimal128.fromString('0.12345678901234567890')]],
  ['of whole numbers beyond Int64', ['9223372036854775808'], [Decimal128.fromString('9223372036854775808')]],
  ['with a number that no type holds', ['1', '1e7000'], ['1', '1e7000']],
  ['of dates', ['2024-01-01', '2024-02-01'], ['2024-01-01', '2024-02-01']],
  ['of booleans', ['true', 'false'], ['true', 'false']],
  ['of numbers with blanks', ['1', ' 2'], ['1', ' 2']],
  ['without a cell', ['', ''], [undefined, undefined]],
];

for (const [name, cells, values] of COLUMNS)
  test(`A column ${name} has one kind`, async () => assert.deepEqual(await valuesOf(cells), values));

/** Columns of which one cell is no number with a decimal comma. */
const TEXTS_WITH_COMMA = [
  '1,5|1.5',
  '1,5|1.2345',
  '1|0.123',
  '1|1234.567',
  '1|01,5',
  '1|1,234,567',
  '1|31.12.2024',
];

const WITH_COMMA: [cells: string[], values: unknown[]][] = [
  [
    ['1.234,56', '1234,56', '-0,5', '1.234', '12.345.678', '7'],
    [1234.56, 1234.56, -0.5, 1234, 12345678, 7],
  ],
  ...TEXTS_WITH_COMMA.map((text): [string[], string[]] => [text.split('|'), text.split('|')]),
  [['9.007.199.254.740.993'], [Long.fromString('9007199254740993')]],
  [['0,12345678901234567890'], [Decimal128.fromString('0.12345678901234567890')]],
];

for (const [cells, values] of WITH_COMMA)
  test(`With --decimal-comma, the column ${cells.join(' | ')} is ${typeof values[0] === 'string' ? 'text' : 'numbers'}`, async () =>
    assert.deepEqual(await valuesOf(cells, { numbers: WITH_DECIMAL_COMMA }), values));

const DATES: [form: string, cell: string, date: string | null][] = [
  ['%d.%m.%Y', '31.12.2024', '2024-12-31T00:00:00.000Z'],
  ['%d.%m.%Y', '1.2.2024', '2024-02-01T00:00:00.000Z'],
  ['%d.%m.%Y', '31.2.2024', null],
  ['%d.%m.%Y', '31-12-2024', null],
  ['%d.%m.%Y', '31.12.2024 10:00', null],
  ['%m/%d/%y', '12/31/68', '2068-12-31T00:00:00.000Z'],
  ['%m/%d/%y', '12/31/69', '1969-12-31T00:00:00.000Z'],
  ['%Y%m%d', '20241231', '2024-12-31T00:00:00.000Z'],
  ['%d/%m/%Y %H:%M:%S.%f', '31/12/2024 23:59:58.05', '2024-12-31T23:59:58.050Z'],
  ['%Y-%m-%dT%H:%M%z', '2024-12-31T23:59+0200', '2024-12-31T21:59:00.000Z'],
  ['%d %m %Y (%%)', '31 12 2024 (%)', '2024-12-31T00:00:00.000Z'],
];

test('--date-format makes dates of a column whose cells all have the form, and of one that is declared', async () => {
  for (const [form, cell, date] of DATES) {
    const dates = [dateFormOf(form)];
    const [value] = await valuesOf([cell, ''], { dates });
    assert.deepEqual(value, date === null ? cell : new Date(date), `${form}: ${cell}`);
    if (date !== null) assert.deepEqual(await valuesOf([cell, 'x'], { dates }), [cell, 'x']);
  }
  const two = { dates: [dateFormOf('%d.%m.%Y'), dateFormOf('%d.%m.%Y %H:%M')] };
  const midnight = new Date('2024-12-31');
  assert.deepEqual(await valuesOf(['31.12.2024', '31.12.2024 0:00'], two), [midnight, midnight]);
  const types = new Map([['v', 'date' as const]]);
  const { bad } = await read('id,category,price,v\n1,c,1,2024-12-31\n', 'csv', { ...two, types });
  assert.deepEqual(bad, ['2: column "v": "2024-12-31" is not a date as %d.%m.%Y']);
});

test('--booleans makes booleans of a column that has no other words', async () => {
  const booleans = booleansOf(['ja/nein', '1/0']);
  assert.deepEqual(await valuesOf(['Ja', '', 'nein'], { booleans }), [true, undefined, false]);
  assert.deepEqual(await valuesOf(['1', '0'], { booleans }), [true, false]);
  assert.deepEqual(await valuesOf(['1', '0', '2'], { booleans }), [1, 0, 2]);
  assert.deepEqual(await valuesOf(['ja', 'vielleicht'], { booleans }), ['ja', 'vielleicht']);
});

test('A price with a decimal comma needs the option, and each other form is refused with its line', async () => {
  const content = 'id;category;price\n1;a;1.234,50\n2;a;19,9\n3;a;1.5\n4;a;0.123\n5;a;12,34,5\n';
  const { items, bad } = await read(content, 'csv', { numbers: WITH_DECIMAL_COMMA });
  assert.deepEqual(
    items.map(({ price }) => price as unknown),
    [1234.5, 19.9],
  );
  assert.deepEqual(
    bad,
    ['4|1.5', '5|0.123', '6|12,34,5']
      .map((text) => text.split('|'))
      .map(([line, cell]) => `${line}: column "price": "${cell}" is not a number as 1.234,56 or 1234,56`),
  );
  const without = await read(content, 'csv');
  assert.equal(without.bad[0], '2: column "price": "1.234,50" is not a number');
});

const HEX = '65a1b2c3d4e5f60718293a4b';
const ID = '6b29fc40-ca47-1067-b31d-00dd010662da';
/** Cells of each kind with their values, and cells that are none. */
const DECLARED: Readonly<Record<string, readonly [good: Readonly<Record<string, unknown>>, bad: string[]]>> =
  {
    string: [{ 7: '7', ' 7': ' 7' }, []],
    number: [{ '007': 7, '+5': 5, '1E3': 1000, '.5': 0.5 }, ['x', '1e999', `0.${'1'.repeat(35)}`, '1,5']],
    decimal: [
      { '1.50': Decimal128.fromString('1.50'), 7: Decimal128.fromString('7') },
      ['x', '1'.repeat(35)],
    ],
    date: [
      {
        '2024-02-29': new Date('2024-02-29T00:00:00Z'),
        '2024-12-31T23:59:59.999Z': new Date('2024-12-31T23:59:59.999Z'),
        '2024-12-31 23:59:59+02': new Date('2024-12-31T21:59:59Z'),
        '2024-12-31 23:59:59.123000 UTC': new Date('2024-12-31T23:59:59.123Z'),
        '0001-01-01': new Date('0001-01-01T00:00:00Z'),
      },
      [
        ...['2023-02-29', '2024-13-01', '2024-12-31 23:59:59', '2024-12-31T24:00:00Z', '31.12.2024'],
        ...['2024-01-01T00:00:00.1234Z', '1704067200000', '2024-01-01T00:00:00+99:00'],
      ],
    ],
    'date-utc': [{ '2024-12-31 23:59:59': new Date('2024-12-31T23:59:59Z') }, ['2024-02-30']],
    boolean: [{ TRUE: true, f: false, 1: true, No: false }, ['2', 'toString']],
    objectid: [{ [HEX]: new ObjectId(HEX) }, ['x', HEX.slice(1)]],
    uuid: [{ [ID]: new UUID(ID) }, ['x', HEX]],
    json: [
      {
        '{"a":[1,{"b":null}]}': { a: [1, { b: null }] },
        '12345678901234567': Long.fromString('12345678901234567'),
        '{"$date":"2024-01-01T00:00:00Z"}': new Date('2024-01-01T00:00:00Z'),
        '"x"': 'x',
      },
      ['{', '1,2', '1],[2', '{"$oid":"x"}', '1'.repeat(40)],
    ],
  };

for (const [kind, [good, bad]] of Object.entries(DECLARED))
  test(`--type v=${kind} reads what is of that kind, and refuses any other cell with its line and column`, async () => {
    const types = new Map([['v', kind as never]]);
    assert.deepEqual(await valuesOf(Object.keys(good), { types }), Object.values(good));
    for (const cell of bad) {
      const content = `category\tprice\tv\na\t1\t"${cell.replaceAll('"', '""')}"\na\t1\t\n`;
      const { items, bad: found } = await read(content, 'csv', { types });
      assert.equal(found.length, 1, `${kind}: ${cell}`);
      assert.match(found[0] ?? '', /^2: column "v": /);
      assert.equal(items.length, 1);
    }
  });

test('Ids are integers when all of them are, and text otherwise, and --type says more', async () => {
  const idsOf = async (cells: string[], types = new Map()) => {
    const content = `id,category,price\n${cells.map((cell) => `${cell},a,1\n`).join('')}`;
    return (await read(content, 'csv', { isFile: true, types })).items.map(({ _id }) => _id as unknown);
  };
  assert.deepEqual(await idsOf(['8', '7']), [8, 7]);
  assert.deepEqual(await idsOf(['8', '007']), ['8', '007']);
  assert.deepEqual(await idsOf(['8', '1.5']), ['8', '1.5']);
  assert.deepEqual(await idsOf(['8'], new Map([['id', 'string']])), ['8']);
  assert.deepEqual(await idsOf([HEX], new Map([['id', 'objectid']])), [new ObjectId(HEX)]);
});

test('A pipe is decided by its first 16 MiB, and a later cell of another kind is refused with what to declare', async () => {
  const filler = 'x'.repeat(1_000_000);
  const row = (n: number, zip: string) => `${n},a,1,${zip},${filler}\n`;
  const count = Math.ceil(SAMPLE_BYTES / filler.length) + 1;
  const rows = Array.from({ length: count }, (_, n) => row(n, String(10_000 + n)));
  const content = `id,category,price,zip,filler\n${rows.join('')}${row(count, '01234')}x7,a,1,5,\n${row(count + 2, '5')}`;
  const pipe = await read(content, 'csv');
  assert.equal(pipe.bad.length, 2);
  assert.match(
    pipe.bad[0] ?? '',
    new RegExp(`^${count + 2}: column "zip": "01234" is not a number, .*--type "zip=string"`),
  );
  assert.match(
    pipe.bad[1] ?? '',
    new RegExp(`^${count + 3}: column "id": "x7" is not an integer, .*--type "id=string"`),
  );
  assert.equal(pipe.items.length, count + 1);
  assert.ok(pipe.items.every(({ zip }) => typeof zip === 'number'));
  const file = await read(content, 'csv', { isFile: true });
  assert.deepEqual(file.bad, []);
  assert.ok(file.items.every(({ zip, _id }) => typeof zip === 'string' && typeof _id === 'string'));
});

test('A file that has another header when it is read again is refused', async () => {
  const bytes = (content: string) => inChunks(Buffer.from(content), 100);
  const again = () => Promise.resolve(bytes('id,category,price,b\n1,c,2,3\n'));
  const { rows } = await readRows(bytes('id,category,price,a\n1,c,2,3\n'), readingOf('csv'), again);
  await assert.rejects(
    async () => {
      for await (const row of eachRow(rows)) assert.fail(`a row ${row.at}`);
    },
    (error) => error instanceof BrokenSource && error.message.includes('the file changed'),
  );
});

test('A file that grows between the two times keeps one kind in each column', async () => {
  const bytes = (content: string) => inChunks(Buffer.from(content), 100);
  const start = 'id,category,price,a\n1,c,2,3\n';
  const again = () => Promise.resolve(bytes(start));
  const { rows } = await readRows(bytes(`${start}2,c,2,x\n`), readingOf('csv'), again);
  const found: string[] = [];
  for await (const row of eachRow(rows)) found.push('problem' in row ? row.problem : 'item');
  assert.equal(found.length, 2);
  assert.match(found[1] ?? '', /^column "a": "x" is not a number/);
});

test('A header with dots becomes nested documents, in their order', async () => {
  const content =
    'id,customer.name,category,customer.address.zip,No.,price,customer.2,e.g. this,a..b\n1,Ann,c,01234,5,2,x,y,z\n2,,c,,,2,,,\n';
  const { items } = await read(content, 'csv');
  assert.equal(
    JSON.stringify(items[0]),
    '{"_id":1,"customer":{"2":"x","name":"Ann","address":{"zip":"01234"}},"category":"c","No.":5,"price":2,"e.g. this":"y","a..b":"z"}',
  );
  assert.deepEqual(items[1], { _id: 2, category: 'c', price: 2 });
  const { error } = await read('category,price,a.b,a\nc,1,2,3\n', 'csv');
  assert.ok(error instanceof BrokenSource);
  assert.match(error.message, /columns "a" and "a\.b", but a field cannot be a value and a document/);
  const deep = await read(`category,price,${'a.'.repeat(32)}a\nc,1,2\n`, 'csv');
  assert.match(deep.error?.message ?? '', /nested deeper than 32 levels/);
});

test('The delimiter is the only one of comma, semicolon and tab in the header, outside of quotes', async () => {
  const good: [content: string, item: Document][] = [
    ['\ufeff"a;b";category;price\n"x;""y""";c;1\n', { 'a;b': 'x;"y"', category: 'c', price: 1 }],
    ['category\tprice\ta\nc\t1\tx;y,z\n', { category: 'c', price: 1, a: 'x;y,z' }],
    ['\r\n"a\tb\n",category,price\r\nx;y,c,1\r\n', { 'a\tb\n': 'x;y', category: 'c', price: 1 }],
  ];
  for (const [content, item] of good)
    for (const chunk of [1, 65_536]) {
      const { items, bad, error } = await read(content, 'csv', { chunk });
      assert.deepEqual({ bad, error }, { bad: [], error: undefined });
      const { _id, ...fields } = items[0] ?? {};
      assert.ok(_id instanceof ObjectId);
      assert.deepEqual(fields, item);
    }
  const ambiguous = await read('category;price, net;price\nc;1;2\n', 'csv');
  assert.ok(ambiguous.error instanceof UsageError);
  assert.match(ambiguous.error.message, /contains , and ; outside of quotes; name the one .* --delimiter/);
  const named = await read('category;price, net;price\nc;1;2\n', 'csv', { delimiter: ';' });
  assert.equal(named.items[0]?.['price, net'], 1);
  const other = await read('category|price|a\nc|1|"x|y"\n', 'csv');
  assert.match(other.error?.message ?? '', /The columns are: "category\|price\|a"/);
  assert.equal((await read('category|price|a\nc|1|"x|y"\n', 'csv', { delimiter: '|' })).items[0]?.a, 'x|y');
});

test('At the end each column has the kind that it became, and each column of text the first cell that is no number', async () => {
  const content = 'sku;Art;Preis;PLZ;Menge;leer;kunde.land\nA1;x;1,50;1;1,5;;DE\nA2;x;2;01234;2;;DE\n';
  const columns = { category: 'Art', price: 'Preis', id: 'sku' };
  const types = new Map([['Preis', 'decimal' as const]]);
  const { items, described } = await read(content, 'csv', { columns, types, numbers: WITH_DECIMAL_COMMA });
  assert.equal(String(items[0]?.price), '1.50');
  const otherwise =
    '--null, --thousands, --decimal-comma, --currency, --date-format, --booleans and --type read such cells otherwise: sluice import --help';
  assert.deepEqual(described, [
    'columns:',
    '  sku: _id, string ("A1" on line 2 is not an integer)',
    '  Art: category, string',
    '  Preis: price, decimal',
    '  PLZ: string ("01234" on line 3 is not a number as JSON writes it)',
    '  Menge: number',
    '  leer: no field, no cell with a value was read',
    '  kunde.land: string ("DE" on line 2 is not a number as JSON writes it)',
    otherwise,
  ]);
  const taken = await read('category,price,cost\nc,1,2\n', 'csv', {
    columns: { category: 'category', price: 'cost', id: null },
  });
  assert.deepEqual(taken.described.slice(2), [
    '  price: not imported, another column takes its place',
    '  cost: price, number',
  ]);
});

test('--type gives JSON fields their kinds by their paths, through arrays, and says when no row has the path', async () => {
  const types = new Map([
    ['at', 'date'],
    ['address.zip', 'string'],
    ['lines.price', 'decimal'],
    ['nowhere.x', 'uuid'],
  ] as const);
  const row =
    '{"id":1,"category":"c","price":2,"at":"2024-01-01","address":{"zip":1234,"n":1},"lines":[{"price":"1.50"},{"price":2.50},{"price":{"$numberInt":"3"}}]}';
  for (const format of ['ndjson', 'json'] as const) {
    const { items, described } = await read(format === 'json' ? `[${row}]` : row, format, { types });
    assert.deepEqual(items[0], {
      _id: 1,
      category: 'c',
      price: 2,
      at: new Date('2024-01-01'),
      address: { zip: '1234', n: 1 },
      lines: [
        { price: Decimal128.fromString('1.50') },
        { price: Decimal128.fromString('2.50') },
        { price: 3 },
      ],
    });
    assert.deepEqual(described, ['no row has the field "nowhere.x" of --type']);
  }
  const bad = await read(`${row.replace('"2024-01-01"', 'true')}\n${row.replace('2.50', '"x"')}`, 'ndjson', {
    types,
  });
  assert.deepEqual(bad.bad, [
    '1: field "at": "true" is not a date as 2024-12-31 or 2024-12-31T23:59:59.999Z',
    '2: field "lines.price": "x" is not a number',
  ]);
  assert.deepEqual(await jsonItem(row), { ...(await read(row, 'ndjson')).items[0] });
});

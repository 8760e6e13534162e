import assert from 'node:assert/strict';
import { test } from 'node:test';
import { read } from '../support/import/import-reading.ts';

const ROWS = { columns: { category: null, price: null, id: null } };
const withoutId = (items: readonly Record<string, unknown>[]) =>
  items.map((item) => Object.fromEntries(Object.entries(item).filter(([name]) => name !== '_id')));

/** Reads rows of CSV from a file, which is read twice, and from a pipe. Both must give the same. */
async function rowsOf(content: string, changes: Parameters<typeof read>[2] = {}) {
  const outcomes = await Promise.all(
    [true, false].map((isFile) => read(content, 'csv', { ...ROWS, isFile, ...changes })),
  );
  const [file, pipe] = outcomes.map(({ items, bad, described, error }) => ({
    rows: withoutId(items),
    bad,
    described,
    error: error?.message,
  }));
  assert.deepEqual(pipe, file);
  return file ?? assert.fail();
}

for (const chunk of [1, 2, 65_536])
  test(`a byte order mark before a quoted header belongs to no name, in chunks of ${chunk} bytes`, async () => {
    const { rows } = await rowsOf('\ufeff"size ""inch""","colour"\n10,red\n', { chunk });
    assert.deepEqual(rows, [{ 'size "inch"': 10, colour: 'red' }]);
  });

test('an empty text in quotes is a text, and a cell without quotes and text is no value', async () => {
  const { rows } = await rowsOf('id,a,b\n1,"",x\n2,,y\n3,"x ""y""",""\n');
  assert.deepEqual(rows, [{ a: '', b: 'x' }, { b: 'y' }, { a: 'x "y"', b: '' }]);
});

test('an empty cell in quotes is no value in a column of numbers, of dates, and of ids', async () => {
  const types = new Map([['d', 'date' as const]]);
  const { rows, bad } = await rowsOf('_id,n,d\n1,"",""\n2,"5","2024-12-31"\n"","6",""\n', { types });
  assert.deepEqual(rows, [{}, { n: 5, d: new Date('2024-12-31') }]);
  assert.deepEqual(bad, ['4: column "_id": the id is empty']);
});

test('a column of empty texts alone is text', async () => {
  const { rows, described } = await rowsOf('a,b\n"",\n"",\n');
  assert.deepEqual(rows, [{ a: '' }, { a: '' }]);
  assert.deepEqual(described, ['columns:', '  a: string', '  b: no field, no cell with a value was read']);
});

test('--null names the texts that stand for no value, outside of quotes', async () => {
  const content = '"id","mass","land"\n"1",3750,"NA"\n"2",NA,"DE"\n"3",3800,NA\n';
  const plain = await rowsOf(content);
  assert.equal(plain.described[2], '  mass: string ("NA" on line 3 is not a number as JSON writes it)');
  assert.match(plain.described.at(-1) ?? '', /^--null, .*--type read such cells otherwise/);
  const { rows } = await rowsOf(content, { missing: ['NA', '-'] });
  assert.deepEqual(rows, [{ mass: 3750, land: 'NA' }, { land: 'DE' }, { mass: 3800 }]);
});

test('--name names a column without a name, which the message about it says', async () => {
  const content = ',city,n\n0,Oslo,1\n1,Bern,2\n';
  const { error } = await rowsOf(content);
  assert.equal(error, 'column 1 has no name in the header row; --name 1=NAME gives it one');
  const { rows } = await rowsOf(content, { names: new Map([[1, 'index']]) });
  assert.deepEqual(rows, [
    { index: 0, city: 'Oslo', n: 1 },
    { index: 1, city: 'Bern', n: 2 },
  ]);
  const other = await rowsOf(content, { names: new Map([[4, 'x']]) });
  assert.equal(other.error, '--name 4=...: the header row has 3 columns');
});

test('--no-paths keeps names with dots, which the message about them says', async () => {
  const content = 'a,a.1\n1,2\n';
  const { error } = await rowsOf(content);
  assert.match(error ?? '', /cannot be a value and a document; --no-paths keeps each name as it is$/);
  const { rows } = await rowsOf(content, { isFlat: true });
  assert.deepEqual(rows, [{ a: 1, 'a.1': 2 }]);
});

for (const chunk of [1, 7, 65_536])
  test(`one object over several lines is a row, or has its rows in a member, in chunks of ${chunk} bytes`, async () => {
    for (const format of ['json', 'ndjson'] as const) {
      const { items, bad, error, unit } = await read('{ "_id":\n1}', format, { ...ROWS, chunk });
      assert.deepEqual([items, bad, error, unit], [[{ _id: 1 }], [], undefined, 'row']);
      for (const content of ['{\n "type": "x",\n "all": [ {"a": 1} ]\n}\n', '{"all": [\n{"a":1}]}']) {
        const wrapped = await read(content, format, { ...ROWS, chunk });
        assert.match(wrapped.error?.message ?? '', /its member "all" has the rows; .*jq -c '.all\[\]' FILE/);
        assert.deepEqual([wrapped.items, wrapped.bad], [[], []]);
      }
    }
  });

test('lines that end with a comma are bad rows, and no object over several lines', async () => {
  const { items, bad } = await read('{"_id":1},\n{"_id":2},\n{"_id":3}\n', 'ndjson', ROWS);
  const reason = 'the line is not valid JSON at character 10: expected nothing more, got ","';
  assert.deepEqual([items, bad], [[{ _id: 3 }], [`1: ${reason}`, `2: ${reason}`]]);
});

for (const format of ['csv', 'ndjson', 'json'] as const)
  for (const mark of ['\ufeff', ''])
    test(`${format} of UTF-16 is refused as a whole, with ${mark === '' ? 'no' : 'a'} byte order mark`, async () => {
      const content = Buffer.from(`${mark}${format === 'csv' ? 'a,b\n1,2\n' : '{"a":1}\n'}`, 'utf16le');
      for (const chunk of [1, 65_536]) {
        const { error, items, bad } = await read(content, format, { ...ROWS, chunk });
        assert.match(
          error?.message ?? '',
          /^the file is UTF-16; expected UTF-8: --encoding utf-16le \(or utf-16be\) reads it$/,
        );
        assert.deepEqual([items, bad], [[], []]);
      }
    });

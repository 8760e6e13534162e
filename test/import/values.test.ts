import assert from 'node:assert/strict';
import { test } from 'node:test';
import { itemToJson } from '../support/rows/item-json.ts';
import { Binary, BSON, BSONRegExp, Code, Decimal128, ObjectId, UUID } from '../../src/store/values/bson.ts';
import { COLUMNS, jsonItem, read } from '../support/import/import-reading.ts';

test('Integers keep every digit in NDJSON and in JSON arrays', async () => {
  const row =
    '{"id":"a","category":"1234567890123456789","price":9007199254740993,"a":[-9223372036854775808],' +
    '"b":9223372036854775808,"c":9007199254740991,"d":1234567890.1234567890,"e":3000000000,"f":-0}';
  const item = await jsonItem(row);
  assert.equal(String(item.price), '9007199254740993');
  assert.equal(item.category, '1234567890123456789');
  assert.equal(String((item.a as unknown[])[0]), '-9223372036854775808');
  assert.equal(String(item.b), '9223372036854775808');
  assert.equal(item.c, 9007199254740991);
  assert.equal(String(item.d), '1234567890.1234567890');
  assert.equal(item.e, 3e9);
});

test('A fraction becomes a double when that keeps all its digits, otherwise a Decimal128', async () => {
  const digits = '0.1234567890123456789012345678901234';
  const item = await jsonItem(
    `{"id":1,"category":"c","price":0.1,"a":0.30000000000000004,"b":0.10000000000000000000,"c":${digits},` +
      '"d":1.00000000000000000001,"e":-12345678901234567.5E-3,"f":1e-400,"g":5e-324,"h":1e22,"i":[0.1234567890123456789]}',
  );
  const [a, b, c, d, e, f, g, h, i] = Object.values(item).slice(3) as unknown[];
  assert.deepEqual([a, b, g, h], [0.30000000000000004, 0.1, 5e-324, 1e22]);
  assert.deepEqual([c, d, e, f].map(String), [
    digits,
    '1.00000000000000000001',
    '-12345678901234.5675',
    '1E-400',
  ]);
  assert.deepEqual((i as unknown[]).map(String), ['0.1234567890123456789']);
  for (const value of [c, d, e, f]) assert.ok(value instanceof Decimal128);
});

test('Extended JSON, as mongoexport writes it, becomes BSON values', async () => {
  const item = await jsonItem(
    '{"_id":{"$oid":"65a1b2c3d4e5f60718293a4b"},"category":"c","price":{"$numberDecimal":"1.50"},' +
      '"long":{"$numberLong":"5"},"date":{"$date":"2024-01-02T03:04:05.678Z"},"int":{"$numberInt":"7"},' +
      '"old":{"$date":{"$numberLong":"-1"}},"uuid":{"$uuid":"6b29fc40-ca47-1067-b31d-00dd010662da"},' +
      '"list":[{"$numberDouble":"2.0"}],"bytes":{"$binary":{"base64":"AQI=","subType":"00"}}}',
  );
  const types = Object.fromEntries(
    Object.entries(item).map(([name, value]) => [name, (value as object).constructor.name]),
  );
  assert.deepEqual(types, {
    _id: 'ObjectId',
    category: 'String',
    price: 'Decimal128',
    long: 'Long',
    date: 'Date',
    int: 'Number',
    old: 'Date',
    uuid: 'UUID',
    list: 'Array',
    bytes: 'Binary',
  });
  assert.equal(String(item._id), '65a1b2c3d4e5f60718293a4b');
  assert.equal((item.date as Date).toISOString(), '2024-01-02T03:04:05.678Z');
});

test('Values may be nested 32 levels deep', async () => {
  const deep = `${'['.repeat(31)}1${']'.repeat(31)}`;
  const item = await jsonItem(`{"id":1,"category":"","price":0,"a":{"b":[{"id":2,"_id":3}]},"d":${deep}}`);
  assert.deepEqual(item.a, { b: [{ id: 2, _id: 3 }] });
  assert.equal(JSON.stringify(item.d), deep);
});

test('Each row without an id gets a new ObjectId', async () => {
  const csv = await read('category,price\na,1\nb,2\n', 'csv');
  const json = await read('{"category":"a","price":1}\n'.repeat(2), 'ndjson');
  const ids = [...csv.items, ...json.items].map(({ _id }) => String(_id));
  assert.equal(new Set(ids.filter((id) => /^[0-9a-f]{24}$/.test(id))).size, 4);
});

test('With --id, a row without that field is refused', async () => {
  const columns = { ...COLUMNS, id: 'sku' };
  const { bad } = await read('{"_id":1,"category":"a","price":1}\n', 'ndjson', { columns });
  assert.deepEqual(bad, ['1: the row has no field "sku" for the id']);
});

test('Names that are numbers keep their places at every depth, in lines, in arrays and in CSV', async () => {
  const row =
    '{"id":1,"country":"X","2019":1.5,"2020":{"b":1,"10":[{"z":0,"7":1}],"9":2},"category":"c","price":1}';
  for (const [format, content] of [
    ['ndjson', row],
    ['json', `[${row}]`],
    ['ndjson', row.replace('1.5', '1.500000000000000001')],
    ['ndjson', row.replace('"7"', '"\\u0037"')],
  ] as const) {
    const { documents, bad } = await read(content, format);
    assert.deepEqual(bad, []);
    const [bytes = new Uint8Array()] = documents;
    assert.equal(
      itemToJson(bytes),
      content.includes('0001') ? row.replace('1.5', '1.500000000000000001') : row,
    );
  }
  const { documents } = await read('2024,price,1,id,category\n5,2,6,a,c\n', 'csv');
  const [csv = new Uint8Array()] = documents;
  assert.equal(itemToJson(csv), '{"id":"a","2024":5,"price":2,"1":6,"category":"c"}');
});

test('References, code with a scope and the older forms of mongoexport become BSON values', async () => {
  const item = await jsonItem(
    '{"_id":1,"category":"c","price":1,"_bsontype":"ObjectId","owner":{"$ref":"people","$id":{"$oid":"65a1b2c3d4e5f60718293a4b"},"$db":"d"},' +
      '"code":{"$code":"f()","$scope":{"9":{"$numberLong":"5"},"a":1}},"old":{"$binary":"AQI=","$type":"05"},' +
      '"pattern":{"$regex":"a+","$options":"i"},"uuid":{"$binary":{"base64":"aynEDMpHEGezHQDdAQZi2g==","subType":"04"}}}',
  );
  const { owner, code, old, pattern, uuid } = item as Record<string, unknown>;
  assert.deepEqual(owner, new BSON.DBRef('people', new ObjectId('65a1b2c3d4e5f60718293a4b'), 'd'));
  assert.ok(code instanceof Code && code.code === 'f()');
  assert.equal(String(code.scope?.['9']), '5');
  assert.ok(old instanceof Binary && old.sub_type === 5 && old.toString('hex') === '0102');
  assert.ok(pattern instanceof BSONRegExp || pattern instanceof RegExp);
  assert.ok(uuid instanceof UUID);
  assert.equal(item._bsontype, 'ObjectId');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '../../../src/base/errors.ts';
import { BSON, MaxKey, MinKey } from '../../../src/store/values/bson.ts';
import { MongoConnection } from '../../../src/store/mongo/connection.ts';
import { writeRaw } from '../../../src/store/mongo/write/raw-write.ts';
import type { Plan } from '../../../src/store/store.ts';
import { openStore, testClient, WAYS } from '../../support/store/mongo/mongo.ts';
import { testMongo } from '../../support/store/mongo/mongod.ts';
import { NEVER, walk } from '../../support/store/reading.ts';

/** Values as other drivers, of other languages or of earlier times, may have stored them: type and bytes. */
const VALUES: Readonly<Record<string, { type: number; hex: string; isCarried: boolean }>> = {
  'a symbol': { type: 0x0e, hex: '0200000061' + '00', isCarried: true },
  code: { type: 0x0d, hex: '0200000078' + '00', isCarried: true },
  'code with a scope': {
    type: 0x0f,
    hex: '16000000' + '02000000' + '7800' + '0c0000001061000100000000',
    isCarried: true,
  },
  'negative zero': { type: 0x01, hex: '0000000000000080', isCarried: true },
  'a NaN with a payload': { type: 0x01, hex: '010000000000f87f', isCarried: true },
  'a negative NaN': { type: 0x01, hex: '000000000000f8ff', isCarried: true },
  'a signaling NaN': { type: 0x01, hex: '010000000000f07f', isCarried: true },
  'a decimal with zeros behind': {
    type: 0x13,
    hex: 'f40100000000000000000000000' + '03c30',
    isCarried: true,
  },
  'a decimal of negative zero': { type: 0x13, hex: '000000000000000000000000000040b0', isCarried: true },
  'a decimal NaN with a payload': { type: 0x13, hex: '0100000000000000000000000000007c', isCarried: true },
  'a decimal of more than 34 digits': {
    type: 0x13,
    hex: 'ffffffffffffffffffffffffffff5f30',
    isCarried: true,
  },
  'the old binary subtype': { type: 0x05, hex: '0600000002' + '02000000' + '0102', isCarried: true },
  'an earliest date': { type: 0x09, hex: '0000000000000080', isCarried: false },
  'a date beyond JavaScript': { type: 0x09, hex: '0000c16ff2862300', isCarried: false },
  undefined: { type: 0x06, hex: '', isCarried: false },
  'a DBPointer': { type: 0x0c, hex: '0200000061' + '00' + '000102030405060708090a0b', isCarried: false },
  'text that is not UTF-8': { type: 0x02, hex: '03000000' + 'ff61' + '00', isCarried: false },
  'a document with one name twice': {
    type: 0x03,
    hex: '13000000' + '106100' + '01000000' + '106100' + '02000000' + '00',
    isCarried: false,
  },
};

/** The document {_id: n, s: value}. */
function rowOf(n: number, { type, hex }: { readonly type: number; readonly hex: string }): Buffer {
  const id = Buffer.from(BSON.serialize({ _id: n })).subarray(4, -1);
  const value = Buffer.concat([Buffer.of(type), Buffer.from('s\0'), Buffer.from(hex, 'hex')]);
  const row = Buffer.concat([Buffer.alloc(4), id, value, Buffer.alloc(1)]);
  row.writeInt32LE(row.length);
  return row;
}

for (const { name: way, lane } of WAYS)
  test(`a walk over values that few drivers can write is whole or refused by name, never shorter, ${way}`, async (t) => {
    const uri = await testMongo(t);
    if (uri === null) return;
    const db = testClient(t, uri).db();
    const connection = new MongoConnection(uri);
    t.after(() => connection.close());
    const { store, warnings } = await openStore(t, uri, { lane, items: false, manageIndexes: false });
    for (const [n, [name, value]] of Object.entries(VALUES).entries()) {
      const collection = `rows${n}`;
      await db.collection(collection).createIndex({ s: 1, _id: 1 });
      const rows = [1, 2, 3].map((id) => rowOf(id, value));
      rows.push(rowOf(0, { type: 0x0a, hex: '' }), rowOf(4, { type: 0x08, hex: '01' }));
      assert.deepEqual((await writeRaw(connection, collection, 'insert', rows)).errors, [], name);
      const opened = await store.open({ name: collection, collection, indexes: [] });
      const index = (await opened.describe(NEVER)).indexes.find(({ keys }) => keys[0]?.path === 's');
      assert.ok(index);
      for (const direction of [1, -1] as const) {
        const plan: Plan = { index, sort: 's', direction };
        const idOf = (row: Buffer) => row.readInt32LE(9);
        const ids = (await walk(opened, plan, 10)).map(idOf);
        assert.equal(ids.length, rows.length, name);
        const found: number[] = [];
        const byOne = () => walk(opened, plan, 1, (some) => found.push(...some.map(idOf)));
        if (value.isCarried) {
          await byOne();
          assert.deepEqual(found, ids, `${name}, direction ${direction}`);
          continue;
        }
        await assert.rejects(
          byOne,
          (error) =>
            error instanceof AppError &&
            error.code === 'invalid-cursor' &&
            error.message.includes('carry the s of the row'),
          name,
        );
        assert.deepEqual(found, ids.slice(0, found.length), name);
      }
    }
    assert.deepEqual(warnings, []);
  });

for (const sign of [1, -1] as const)
  test(`a walk by a unique index (${sign}) has the rows of the lowest and the highest value once`, async (t) => {
    const uri = await testMongo(t);
    if (uri === null) return;
    const rows = testClient(t, uri).db().collection<{ _id: number; u: unknown }>('rows');
    await rows.createIndex({ u: sign }, { unique: true }, {});
    await rows.insertMany([new MinKey(), 1, 2, new MaxKey()].map((u, _id) => ({ _id, u })));
    const { store } = await openStore(t, uri, { items: false, manageIndexes: false });
    const opened = await store.open({ name: 'rows', collection: 'rows', indexes: [] });
    const index = (await opened.describe(NEVER)).indexes.find(({ keys }) => keys[0]?.path === 'u');
    assert.ok(index);
    for (const direction of [1, -1] as const)
      for (const size of [1, 2, 10]) {
        const found = await walk(opened, { index, sort: 'u', direction }, size);
        const ids = found.map((row) => row.readInt32LE(9));
        assert.deepEqual(ids, direction === 1 ? [0, 1, 2, 3] : [3, 2, 1, 0], `${direction}, by ${size}`);
      }
  });

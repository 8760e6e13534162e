import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromRow, toRow, USERS, type StoredUser } from '../../src/users/row.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { openStore, testMongoStore } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { testsWith } from '../support/tests-with.ts';
import { userStoreContract } from './records.contract.ts';

userStoreContract(testsWith(testSqlite, 'sqlite'));
userStoreContract(testsWith(testMongoStore, 'mongodb'));

const TIME = new Date('2026-01-02T03:04:05.678Z');
const ADA: StoredUser = { _id: 'ada', name: '0', email: 'a@b', createdAt: TIME, updatedAt: TIME };

/** A document of any form. */
interface Loose {
  _id: string | number;
  [field: string]: unknown;
}

const countUp = (current: Uint8Array | null): Uint8Array => {
  const before = current ? fromRow(current) : ADA;
  return toRow({ ...before, name: String(Number(before.name) + 1) });
};

test('changes by two processes to one user on MongoDB are all made, none twice', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const open = async () => (await openStore(t, uri)).store.records(USERS);
  const stores = [await open(), await open()];
  let calls = 0;
  const count = (current: Uint8Array | null) => {
    calls++;
    return countUp(current);
  };
  await Promise.all(stores.flatMap((users) => Array.from({ length: 30 }, () => users.change('ada', count))));
  const { before } = (await stores[0]?.change('ada', () => 'keep')) ?? {};
  assert.equal(before && fromRow(before).name, '60');
  t.diagnostic(`60 changes took ${calls} tries`);
  assert.ok(calls > 60, 'some changes conflicted');
});

test('the collection of users is created clustered, with a validator that rejects other documents', async (t) => {
  const opened = await testMongoStore(t);
  if (!opened) return;
  await (await opened.store.records(USERS)).change('ada', () => toRow(ADA));
  const [info] = await opened.client.db().listCollections({ name: 'users' }).toArray();
  assert.ok(info && 'options' in info && info.options.clusteredIndex);
  const users = opened.client.db().collection<Loose>('users');
  const time = new Date();
  const sound = { _id: 'x', name: 'n', email: 'e@e', createdAt: time, updatedAt: time };
  const unsound = [
    { ...sound, password: 'hash' },
    { ...sound, _id: 7 },
    { ...sound, name: null },
    { ...sound, metadata: { a: 1 } },
    { _id: 'x', name: 'n' },
  ];
  for (const document of unsound) await assert.rejects(users.insertOne(document), { code: 121 });
  await users.insertOne(sound);
  await (await openStore(t, opened.uri)).store.records(USERS);
  assert.deepEqual(opened.warnings, []);
});

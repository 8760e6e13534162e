import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Change } from '../../src/store/records.ts';
import { fromRow, toRow, USERS } from '../../src/users/row.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { openStore, testMongoStore } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { testsWith } from '../support/tests-with.ts';
import { countUp, user, userStoreContract } from './records.contract.ts';

userStoreContract(testsWith(testSqlite, 'sqlite'));
userStoreContract(testsWith(testMongoStore, 'mongodb'));

/** A document of any form. */
interface Loose {
  _id: string | number;
  [field: string]: unknown;
}

test('changes by two processes to one user on MongoDB are all made, none twice', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const open = async () => (await openStore(t, uri)).store.records(USERS);
  const stores = [await open(), await open()];
  let calls = 0;
  const count: Change = (current) => {
    calls++;
    return countUp(current);
  };
  const changes = stores.flatMap((users) => Array.from({ length: 30 }, () => users.change('counter', count)));
  await Promise.all(changes);
  const { before } = (await stores[0]?.change('counter', () => 'keep')) ?? {};
  assert.equal(before && fromRow(before).name, '60');
  t.diagnostic(`60 changes took ${calls} tries`);
  assert.ok(calls > 60, 'some changes conflicted');
});

test('the collection of users is created clustered, with a validator that rejects other documents', async (t) => {
  const opened = await testMongoStore(t);
  if (!opened) return;
  await (await opened.store.records(USERS)).change('ada', () => toRow(user('ada', 'Ada')));
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

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { AppError } from '../../src/errors.ts';
import { ITEM_COLLECTION } from '../../src/resources/item-collection.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { Slots } from '../../src/store/slots.ts';
import { fromRow, toRow, USERS } from '../../src/users/row.ts';
import type { User } from '../../src/users/user.ts';
import { testDirectory, testSqlite } from '../support/store/sqlite/sqlite.ts';
import { openStore, testClient, testMongoStore } from '../support/store/mongo/mongo.ts';
import { ownMongod, testMongo } from '../support/store/mongo/mongod.ts';
import { NEVER, PLENTY, takeRows } from '../support/store/reading.ts';
import { NO_MONGOD, onEach, openMongo } from './adapters.ts';
import { userStoreContract } from './records.contract.ts';

onEach(
  [
    { name: 'sqlite', skip: false, open: testSqlite },
    { name: 'mongodb', skip: NO_MONGOD, open: (t: TestContext) => openMongo(t) },
    {
      name: 'mongodb, plain collection',
      skip: NO_MONGOD,
      open: async (t: TestContext) => {
        const opened = await openMongo(t);
        await opened.client.db().createCollection('users');
        return opened;
      },
    },
  ],
  userStoreContract,
);

const TIME = '2026-01-02T03:04:05.678Z';
const ADA: User = { id: 'ada', name: '0', email: 'a@b', createdAt: TIME, updatedAt: TIME };

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
  await Promise.all(stores.flatMap((users) => Array.from({ length: 60 }, () => users.change('ada', count))));
  const { before } = (await stores[0]?.change('ada', () => 'keep')) ?? {};
  assert.equal(before && fromRow(before).name, '120');
  t.diagnostic(`120 changes took ${calls} tries`);
  assert.ok(calls > 120, 'some changes conflicted');
});

test('a foreign collection of users is not served, and items are', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const db = testClient(t, uri).db();
  const strange: Loose = { _id: 'root', name: 'r', email: 'r@r', password: 'hash' };
  await db.collection<Loose>('users').insertOne(strange);
  const { store, warnings } = await openStore(t, uri);
  const users = await store.records(USERS);
  const unfit = (error: unknown) => error instanceof AppError && error.code === 'store-unfit';
  const size = { rows: 10, bytes: PLENTY };
  await assert.rejects(users.read({ sort: '_id', direction: 1 }, {}, size, NEVER), unfit);
  await assert.rejects(users.change('ada', countUp), unfit);
  assert.deepEqual(warnings, [
    "Users are not served from the collection 'users': it has documents that are not users of this server.",
  ]);
  assert.deepEqual(takeRows(await store.items.read({ sort: '_id', direction: 1 }, {}, size, NEVER)), []);

  await db.collection('users').deleteMany({});
  await users.change('ada', countUp); // repaired without a restart
  assert.match(warnings[1] ?? '', /'users' has no such validator/);
});

test('the collection of users is created clustered, with a validator that rejects other documents', async (t) => {
  const opened = await testMongoStore(t);
  if (!opened) return;
  await opened.store.records(USERS);
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

test('a MongoDB user with read permission only can read items and users, and changes are refused with the reason', async (t) => {
  const set = await ownMongod(t, { replicated: false, arguments: ['--auth'] });
  if (!set) return;
  const url = new URL(set.uri);
  const as = (name: string) => `mongodb://${name}:pw@${url.host}/shop?authSource=admin&directConnection=true`;
  const create = (createUser: string, ...roles: unknown[]) => ({ createUser, pwd: 'pw', roles });
  await set.members[0]?.admin((client) => client.db('admin').command(create('root', 'root')));
  const root = testClient(t, as('root'));
  await root.db('admin').command(create('reader', { role: 'read', db: 'shop' }));
  const { store } = await openStore(t, as('root'));
  const users = await store.records(USERS);
  await users.change('ada', countUp);

  const reading = await (await openStore(t, as('reader'))).store.records(USERS);
  const size = { rows: 10, bytes: PLENTY };
  const batch = await reading.read({ sort: '_id', direction: 1 }, {}, size, NEVER);
  assert.deepEqual(takeRows(batch).map(fromRow), [{ ...ADA, name: '1' }]);
  await assert.rejects(reading.change('ada', countUp), (error) => {
    assert.ok(error instanceof AppError);
    assert.equal(error.code, 'store-unavailable');
    assert.match(error.message, /permits this server to read users, but not to change them/);
    return true;
  });

  await root.db().dropCollection('users');
  const without = await openStore(t, as('reader'));
  await without.store.records(USERS);
  assert.match(
    without.warnings.join(),
    /'users' is missing, and the MongoDB user has no permission to create it/,
  );
  assert.deepEqual(
    takeRows(await without.store.items.read({ sort: '_id', direction: 1 }, {}, size, NEVER)),
    [],
  );
  await root.close(); // otherwise the driver would look for a stopped server
});

test('a closed embedded store refuses changes, and finishes earlier ones', async (t) => {
  const directory = await testDirectory(t);
  const store = await openSqlite({ items: ITEM_COLLECTION, directory, slots: new Slots() });
  const users = await store.records(USERS);
  const asked = Array.from({ length: 600 }, () => users.change('ada', countUp));
  await store.close();
  const names = (await Promise.all(asked)).map(({ after }) => after && fromRow(after).name);
  assert.deepEqual(
    names,
    Array.from({ length: 600 }, (_, n) => String(n + 1)),
  );
  await assert.rejects(users.change('ada', countUp), { code: 'store-unavailable' });

  const again = await openSqlite({ items: ITEM_COLLECTION, directory, slots: new Slots() });
  t.after(() => again.close());
  const { before } = await (await again.records(USERS)).change('ada', () => 'keep');
  assert.equal(before && fromRow(before).name, '600');
});

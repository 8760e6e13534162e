import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { MongoServerError, type Db, type Document } from 'mongodb';
import { NEVER } from '../support/store/reading.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { WAYS, openStore, testClient } from '../support/store/mongo/mongo.ts';
import { testsWith } from '../support/tests-with.ts';
import { collectionContract, type PutRandom, type Seeds } from './collection.contract.ts';
import type { RandomCollection } from '../support/store/random-collection.ts';

/** Errors of an index that this collection cannot have: duplicate keys, keys that are taken, an odd one of _id. */
const IMPOSSIBLE = [2, 11000, 85, 86, 67, 197];

/** On a busy machine the first look at a collection may take longer than a request waits for it. */
const NOT_YET = /is not available yet/;

/** Both ways read by the same plans, so the normal run gives each of them other collections. */
function seedsOf(lane: boolean): Seeds {
  if (process.env.LONG) return lane ? { first: 0, count: 2_000 } : { first: 2_000, count: 1_000 };
  return lane ? { first: 0, count: 80 } : { first: 80, count: 30 };
}

for (const { name, lane } of WAYS)
  collectionContract(
    testsWith((t) => openDatabase(t, lane), `mongodb ${name}`),
    seedsOf(lane),
  );

/** A database whose profiler keeps every command, and a store that creates nothing in it. */
async function openDatabase(t: TestContext, lane: boolean): Promise<PutRandom | null> {
  const uri = await testMongo(t);
  if (uri === null) return null;
  const db = testClient(t, uri).db();
  await db.createCollection('system.profile', { capped: true, size: 256 * 1024 * 1024 });
  await db.command({ profile: 2 });
  const onWarning = (message: string) => assert.match(message, NOT_YET);
  const { store, slots } = await openStore(t, uri, { lane, items: false, onWarning });
  let made = 0;
  return async (random) => {
    const collection = `rows.${made++}`;
    await make(db, collection, random);
    const before = await hashOf(db, collection);
    const rows = await store.open({ name: 'rows', collection, indexes: [] });
    for (let isOpen = false; !isOpen;)
      isOpen = await rows.describe(NEVER).then(
        () => true,
        () => false,
      );
    return {
      collection: rows,
      slots,
      check: async () => {
        await checkCommands(db, collection, random.kind === 'clustered');
        assert.equal(await hashOf(db, collection), before, 'reads change nothing');
        await db.dropCollection(collection);
      },
    };
  };
}

async function make(db: Db, name: string, { documents, indexes, kind }: RandomCollection): Promise<void> {
  await db.createCollection(name, {
    ...(kind === 'clustered' && { clusteredIndex: { key: { _id: 1 }, unique: true } }),
    ...(kind === 'capped' && { capped: true, size: 64 * 1024 * 1024 }),
  });
  const collection = db.collection(name);
  const create = async (isUnique: boolean) => {
    for (const { key, options } of indexes.filter(({ options }) => (options.unique === true) === isUnique))
      await collection
        .createIndexes([{ key: Object.fromEntries(key), ...options }])
        .catch((error: unknown) => {
          if (!(error instanceof MongoServerError) || !IMPOSSIBLE.includes(error.code as number)) throw error;
        });
  };
  await create(false); // of an empty collection: that takes a tenth of the time
  // The driver's insertMany replaces an _id of null.
  const written = await db.command({ insert: name, documents });
  assert.equal(written.n, documents.length, JSON.stringify(written));
  await create(true); // where the rows allow it
}

async function hashOf(db: Db, name: string): Promise<unknown> {
  const { collections } = await db.command({ dbHash: 1, collections: [name] });
  return (collections as Document)[name];
}

/** Every command that the store sent was bounded by an index, needed no sort, and examined no more than it returned. */
async function checkCommands(db: Db, name: string, isClustered: boolean): Promise<void> {
  const sent = await db
    .collection('system.profile')
    .find({ ns: `${db.databaseName}.${name}`, appName: /^sluice/, planSummary: { $exists: true } })
    .toArray();
  assert.ok(sent.length > 0, 'the profiler kept commands');
  for (const { command, planSummary, hasSortStage, keysExamined, docsExamined, nreturned } of sent) {
    const shown = JSON.stringify({
      command: command as Document,
      planSummary: planSummary as string,
      keysExamined: keysExamined as number,
      docsExamined: docsExamined as number,
      nreturned: nreturned as number,
    });
    // In an index, null has the entries of the deprecated type undefined, too. Their rows are read and left out.
    const isNull = shown.includes('{"$type":"undefined"}');
    if ((command as Document).find !== undefined && !isNull) {
      const most = Number(nreturned) + Number((command as Document).skip ?? 0) + 3;
      assert.ok(Number(keysExamined ?? 0) <= most, `reads entries that it does not return: ${shown}`);
      assert.ok(Number(docsExamined ?? 0) <= most, `reads rows that it does not return: ${shown}`);
    }
    // A clustered collection is the index of its key. How much is examined was checked.
    const isByKey =
      isClustered && ['"_id_"', '{"_id":1}'].includes(JSON.stringify((command as Document).hint));
    if (!isByKey) assert.doesNotMatch(String(planSummary), /COLLSCAN/, shown);
    assert.notEqual(hasSortStage, true, shown);
  }
}

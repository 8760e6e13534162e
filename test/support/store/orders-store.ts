import type { TestContext } from 'node:test';
import { type Document } from '../../../src/store/bson.ts';
import { openDirectory } from '../exports/export-worker.ts';
import { testDirectory } from './sqlite/sqlite.ts';
import { testClient } from './mongo/mongo.ts';
import { testMongo } from './mongo/mongod.ts';
import { ORDER_INDEXES } from '../resources/orders.ts';
import type { StoreName } from '../process/server.ts';
import { insertDocuments } from './items.ts';

/**
 * Settings of servers that serve these rows as the resource `orders`: from the embedded store's own declaration, or
 * from a collection of MongoDB. Resolves with null and skips the test when there is no mongod.
 */
export async function withOrders(
  t: TestContext,
  name: StoreName,
  rows: readonly Document[],
): Promise<Record<string, string> | null> {
  if (name === 'sqlite') {
    const DATA_DIR = await testDirectory(t);
    const { store } = await openDirectory(DATA_DIR);
    const orders = await store.open({ name: 'orders', collection: 'orders', indexes: ORDER_INDEXES });
    const { refused } = await insertDocuments(orders, rows);
    if (refused.length > 0) throw new Error(refused[0]?.reason);
    await store.close();
    return { DATA_DIR, MONGODB_URI: '' };
  }
  const uri = await testMongo(t);
  if (uri === null) return null;
  const collection = testClient(t, uri).db().collection('orders');
  await collection.insertMany([...rows]);
  for (const fields of ORDER_INDEXES)
    await collection.createIndex(Object.fromEntries([...fields, '_id'].map((path) => [path, 1])));
  return { MONGODB_URI: uri, EXPOSE: 'orders', SAMPLE: 'off' };
}

import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Document } from '../../../src/store/bson.ts';
import { removeDirectory } from '../directory.ts';
import { testDirectory } from '../store/sqlite/sqlite.ts';
import { testClient } from '../store/mongo/mongo.ts';
import { testMongo } from '../store/mongo/mongod.ts';
import { serverOn, type EngineName, type StoreName, type TestServer } from '../process/server.ts';
import { openDirectory } from '../store/sqlite/sqlite.ts';
import { insertDocuments } from '../store/items.ts';

/** A resource of a test: its rows, and its indexes by the paths before `_id`. */
export interface Declared {
  readonly name: string;
  readonly rows: readonly Document[];
  readonly indexes: readonly (readonly string[])[];
}

/** A server with one resource on a store of this kind. Resolves with null and skips the test without a mongod. */
export async function resourceServer(
  t: TestContext,
  store: StoreName,
  { name, rows, indexes }: Declared,
  environment: Record<string, string> = {},
  engine: EngineName = 'uws',
): Promise<TestServer | null> {
  const shared = { HTTP_ENGINE: engine, ...environment };
  if (store === 'sqlite') {
    const directory = await testDirectory(t);
    const opened = await openDirectory(directory);
    const collection = await opened.open({ name, collection: name, indexes });
    await insertDocuments(collection, rows);
    await opened.close();
    return serverOn(t, { MONGODB_URI: '', DATA_DIR: directory, ...shared });
  }
  const uri = await testMongo(t);
  if (uri === null) return null;
  const collection = testClient(t, uri).db().collection(name);
  await collection.insertMany([...rows]);
  for (const paths of indexes)
    await collection.createIndex(Object.fromEntries([...paths, '_id'].map((path) => [path, 1])));
  return serverOn(t, { MONGODB_URI: uri, EXPOSE: name, ...shared });
}

/** A file for RESOURCES_FILE that is removed after the test. */
export async function resourcesFile(t: TestContext, content: unknown): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-resources-'));
  t.after(() => removeDirectory(directory));
  const file = join(directory, 'resources.json');
  await writeFile(file, JSON.stringify(content));
  return file;
}

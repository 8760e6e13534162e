import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Document } from '../../../src/store/values/bson.ts';
import { Slots } from '../../../src/store/turns/slots.ts';
import { openSqlite } from '../../../src/store/sqlite/sqlite-store.ts';
import { USERS } from '../../../src/users/row.ts';
import { insertDocuments } from '../store/items.ts';
import { testClient } from '../store/mongo/mongo.ts';
import { testMongo } from '../store/mongo/mongod.ts';
import { serverOn, type EngineName, type Skipped, type StoreName } from '../process/server.ts';
import type { TestServer } from '../process/server.ts';
import { temporaryFolder } from '../directory.ts';

/** A resource of a test: its rows, and its indexes by the paths before `_id`. Of `users` the indexes alone. */
export interface Rows {
  readonly name: string;
  readonly rows: readonly Document[];
  readonly indexes: readonly (readonly string[])[];
}

/** The settings that name a store of this kind with these resources. Null, and the test is skipped, without a mongod. */
export async function filled<S extends StoreName>(
  t: TestContext,
  store: S,
  resources: readonly Rows[],
): Promise<Record<string, string> | Skipped<S>> {
  if (store === 'sqlite') {
    const DATA_DIR = await temporaryFolder(t);
    const opened = await openSqlite({ directory: DATA_DIR, slots: new Slots() });
    for (const { name, rows, indexes } of resources) {
      if (name === USERS.name) {
        await opened.records({ ...USERS, indexes });
        continue;
      }
      const collection = await opened.open({ name, collection: name, indexes });
      const { refused } = await insertDocuments(collection, rows);
      if (refused.length > 0) throw new Error(refused[0]?.reason);
    }
    await opened.close();
    return { MONGODB_URI: '', DATA_DIR };
  }
  const uri = await testMongo(t);
  if (uri === null) return null as Skipped<S>;
  const db = testClient(t, uri).db();
  for (const { name, rows, indexes } of resources) {
    // The driver would replace an _id that is null.
    if (rows.length > 0) await db.collection(name).insertMany([...rows], { forceServerObjectId: true });
    for (const paths of indexes)
      await db.collection(name).createIndex(Object.fromEntries([...paths, '_id'].map((path) => [path, 1])));
  }
  const exposed = resources.map(({ name }) => name).filter((name) => name !== USERS.name);
  return { MONGODB_URI: uri, EXPOSE: exposed.join(',') };
}

/** A server with one resource on a store of this kind. Resolves with null and skips the test without a mongod. */
export async function resourceServer<S extends StoreName>(
  t: TestContext,
  store: S,
  resource: Rows,
  environment: Record<string, string> = {},
  engine: EngineName = 'uws',
): Promise<TestServer | Skipped<S>> {
  const place = await filled(t, store, [resource]);
  return place && serverOn(t, { HTTP_ENGINE: engine, ...place, ...environment });
}

/** A file for RESOURCES_FILE that is removed after the test. */
export async function resourcesFile(t: TestContext, content: unknown): Promise<string> {
  const directory = await temporaryFolder(t);
  const file = join(directory, 'resources.json');
  await writeFile(file, JSON.stringify(content));
  return file;
}

import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Logger } from 'pino';
import type { Document } from 'bson';
import { USERS } from '../../../src/users/row.ts';
import { temporaryFolder } from '../engine/engines.ts';
import { testDirectory } from '../store/sqlite/sqlite.ts';
import { testClient } from '../store/mongo/mongo.ts';
import { testMongo } from '../store/mongo/mongod.ts';
import type { ServerOptions } from '../../../src/server-options.ts';
import { serverOn, type StoreName, type TestServer } from '../process/server.ts';
import { openDirectory } from '../store/sqlite/sqlite.ts';
import { insertDocuments } from '../store/items.ts';

/** The members of a key in the file. Its secret is `secret-of-NAME`. */
export type KeyGiven = { readonly name: string } & Readonly<Record<string, unknown>>;

/** Rows of a resource, or the indexes of `users`. */
export interface Rows {
  readonly name: string;
  readonly rows: readonly Document[];
  readonly indexes: readonly (readonly string[])[];
}

export interface KeyedServer extends TestServer {
  /** The path of its API_KEYS_FILE. */
  readonly keysFile: string;
  /** The settings that name its store. */
  readonly place: Readonly<Record<string, string>>;
  /** The URI of its MongoDB. Empty for the embedded store. */
  readonly mongo: string;
  /** Sends a request as the client of this name. */
  as(name: string, path: string, options?: RequestInit): Promise<Response>;
  /** Writes these keys into the file, and has the server read it. */
  rewrite(keys: readonly KeyGiven[]): Promise<boolean>;
}

export const bearer = (name: string) => ({ authorization: `Bearer secret-of-${name}` });

/** The content of a keys file. */
export function keysText(keys: readonly KeyGiven[]): string {
  const digestOf = (name: string) => createHash('sha256').update(`secret-of-${name}`).digest('hex');
  return JSON.stringify({ keys: keys.map((key) => ({ sha256: digestOf(key.name), ...key })) });
}

/** A server with these keys and resources, items and users on a store of this kind. Null, and the test is skipped, without a mongod. */
export async function keyedServer(
  t: TestContext,
  store: StoreName,
  keys: readonly KeyGiven[],
  resources: readonly Rows[],
  environment: Record<string, string> = {},
  options: ServerOptions & { readonly log?: Logger } = {},
): Promise<KeyedServer | null> {
  const folder = await temporaryFolder(t);
  const file = join(folder, 'keys.json');
  writeFileSync(file, keysText(keys));
  const RESOURCES_FILE = join(folder, 'resources.json');
  writeFileSync(RESOURCES_FILE, '{"resources":{"items":{}}}');
  const place = await fill(t, store, resources);
  if (!place) return null;
  const server = await serverOn(
    t,
    { API_KEYS_FILE: file, RESOURCES_FILE, HTTP_ENGINE: 'node', ...place, ...environment },
    options,
  );
  return {
    ...server,
    keysFile: file,
    place,
    mongo: place.MONGODB_URI ?? '',
    as: (name, path, { headers, ...more } = {}) =>
      fetch(server.url + path, { ...more, headers: { ...bearer(name), ...(headers as object) } }),
    rewrite: (next) => {
      writeFileSync(file, keysText(next));
      return server.reload();
    },
  };
}

async function fill(
  t: TestContext,
  store: StoreName,
  resources: readonly Rows[],
): Promise<Record<string, string> | null> {
  if (store === 'sqlite') {
    const directory = await testDirectory(t);
    const opened = await openDirectory(directory);
    for (const { name, rows, indexes } of resources) {
      if (name === USERS.name) await opened.records({ ...USERS, indexes });
      if (name === USERS.name) continue;
      const collection = await opened.open({ name, collection: name, indexes });
      await insertDocuments(collection, rows);
    }
    await opened.close();
    return { MONGODB_URI: '', DATA_DIR: directory };
  }
  const uri = await testMongo(t);
  if (uri === null) return null;
  const db = testClient(t, uri).db();
  for (const { name, rows, indexes } of resources) {
    if (rows.length > 0) await db.collection(name).insertMany([...rows]);
    for (const paths of indexes)
      await db.collection(name).createIndex(Object.fromEntries([...paths, '_id'].map((path) => [path, 1])));
  }
  const exposed = resources.map(({ name }) => name).filter((name) => name !== USERS.name);
  return { MONGODB_URI: uri, EXPOSE: exposed.join(',') };
}

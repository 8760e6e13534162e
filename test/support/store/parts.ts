import type { TestContext } from 'node:test';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import type { OwnedCollection } from '../../../src/store/store.ts';
import { keyedServer, type KeyedServer, type KeyGiven, type Rows } from '../access/keyed.ts';
import { testClient } from './mongo/mongo.ts';
import type { Skipped, StoreName } from '../process/server.ts';

export interface PartRow {
  readonly _id: string;
  readonly [field: string]: unknown;
}

/** Changes rows behind the server's back: it has no routes for that. */
export interface Table {
  /** Inserts a row, or replaces it. */
  put(row: PartRow): Promise<void>;
  /** Changes fields of a row that may be there. */
  set(_id: string, fields: Readonly<Record<string, unknown>>): Promise<void>;
  remove(_id: string): Promise<void>;
}

export interface Opened {
  readonly server: KeyedServer;
  readonly table: Table;
  /** Writes something else than the rows. */
  readonly writeElsewhere: () => Promise<unknown>;
}

/**
 * A server whose keys open parts of a collection, which has pre-images. Null, and the test is skipped, without a mongod.
 */
export async function openParts<S extends StoreName>(
  t: TestContext,
  store: S,
  keys: readonly KeyGiven[],
  given: Rows,
): Promise<Opened | Skipped<S>> {
  const server = await keyedServer(t, store, keys, [given], {}, { heartbeatMs: 20 });
  if (!server) return null as Skipped<S>;
  const table = await tableIn(t, server, given);
  if (store === 'sqlite') {
    const writeElsewhere = () => server.insert([{ _id: `${others++}`, category: 'a', price: 1 }]);
    return { server, table, writeElsewhere };
  }
  // A collection of the same database without pre-images: its changes must not end a stream that needs them.
  const plain = testClient(t, server.mongo).db().collection<{ n: number }>('plain');
  await plain.insertOne({ n: 1 });
  return { server, table, writeElsewhere: () => plain.updateOne({}, { $inc: { n: 1 } }) };
}

/** The rows of a resource of a server, which has pre-images. */
export async function tableIn(
  t: TestContext,
  server: KeyedServer,
  { name, indexes, rows: before }: Rows,
): Promise<Table> {
  if (server.mongo === '') {
    const collection = await server.store.open({ name, collection: name, indexes });
    return tableOf(collection, before as readonly PartRow[]);
  }
  await keepImages(t, server.mongo, name);
  const rows = testClient(t, server.mongo).db().collection<PartRow>(name);
  return {
    put: async ({ _id, ...fields }) => {
      await rows.replaceOne({ _id }, fields, { upsert: true });
    },
    set: async (_id, fields) => {
      await rows.updateOne({ _id }, { $set: fields });
    },
    remove: async (_id) => {
      await rows.deleteOne({ _id });
    },
  };
}

/** Has a collection of MongoDB keep pre-images. The embedded store, whose URI is empty, needs none. */
export async function keepImages(t: TestContext, uri: string, name: string, enabled = true): Promise<void> {
  if (uri === '') return;
  const db = testClient(t, uri).db();
  await db.command({ collMod: name, changeStreamPreAndPostImages: { enabled } });
}

let others = 0;

/** The rows of the embedded store, as another writer of the file would change them. */
export function tableOf(
  rows: Pick<OwnedCollection, 'insert' | 'remove'>,
  before: readonly PartRow[] = [],
): Table {
  const present = new Map(before.map((row) => [row._id, row]));
  const put = async (row: PartRow) => {
    present.set(row._id, row);
    await rows.insert([BSON.serialize(row)], 'replace');
  };
  return {
    put,
    set: async (_id, fields) => {
      const found = present.get(_id);
      if (found) await put({ ...found, ...fields });
    },
    remove: async (_id) => {
      present.delete(_id);
      await rows.remove([makeBookmark({ _id })]);
    },
  };
}

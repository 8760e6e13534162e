import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { openObjects } from '../../../../src/server/open-objects.ts';
import { makeBookmark } from '../../../../src/store/bookmark.ts';
import { readFilesPlace } from '../../../../src/store/bucket/place.ts';
import type { ObjectStore } from '../../../../src/store/objects.ts';
import { openSqlite } from '../../../../src/store/sqlite/sqlite-store.ts';
import { Slots } from '../../../../src/store/turns/slots.ts';
import { BSON } from '../../../../src/store/values/bson.ts';
import { stepDown } from '../../faults/soak/incidents.ts';
import { insist } from '../../faults/soak/replica-world.ts';
import { withDatabase } from '../../store/mongo/mongod.ts';
import type { ReplicaSet } from '../../store/mongo/replica-set.ts';
import { documentOf } from './written-rows.ts';

const RESOURCE = 'orders';
const ORDERS = { name: RESOURCE, collection: RESOURCE, indexes: [] };
const NOTE_BYTES = 8_000_000;
/** What is written until the oplog of a set has lost what was in it. */
const NOTES = 12;

/** A store that a history is written into, and the settings of its servers. */
export interface EditionWorld {
  readonly name: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Where the servers put files of editions. */
  readonly objects: ObjectStore;
  /** Writes a row, or removes it. Resolves when a majority has acknowledged it. */
  write(id: string, line: string | null): Promise<void>;
  /** Takes the primary down. Absent: there is none. */
  depose?(): Promise<void>;
  /** Lets the store lose its changes until now. */
  expire(): Promise<void>;
  close(): Promise<void>;
}

/** The settings of servers that make an edition of the orders each second. */
async function settingsIn(folder: string, formats: readonly string[]): Promise<Record<string, string>> {
  await mkdir(folder, { recursive: true });
  const RESOURCES_FILE = join(folder, 'resources.json');
  const editions = { every: '1 s', keep: 3, chunk: '16 KiB', formats };
  await writeFile(RESOURCES_FILE, JSON.stringify({ resources: { [RESOURCE]: { editions } } }));
  const limits = { RATE_LIMIT: 'off', STREAM_LIMIT: 'off', MAX_LOOP_DELAY: '1 h', MAX_WAIT: '1 h' };
  return { PORT: '0', SAMPLE: 'off', RESOURCES_FILE, ...limits };
}

async function objectsOf(FILES: string, keys: Readonly<Record<string, string>>): Promise<ObjectStore> {
  const { place } = readFilesPlace({ FILES, ...keys });
  return openObjects(place, null);
}

/** Where files go, and the keys of the bucket. */
export interface FilesGiven {
  readonly FILES: string;
  readonly keys: Readonly<Record<string, string>>;
  readonly formats: readonly string[];
}

/** An embedded store in a folder. */
export async function sqliteWorld(
  folder: string,
  { FILES, keys, formats }: FilesGiven,
): Promise<EditionWorld> {
  const DATA_DIR = join(folder, 'data');
  const store = await openSqlite({ directory: DATA_DIR, slots: new Slots() });
  const orders = await store.open(ORDERS, 'make');
  const objects = await objectsOf(FILES, keys);
  return {
    name: 'sqlite',
    settings: { ...(await settingsIn(folder, formats)), DATA_DIR, MONGODB_URI: '', FILES, ...keys },
    objects,
    write: async (id, line) => {
      if (line === null) await orders.remove([makeBookmark({ _id: id })]);
      else await orders.insert([documentOf(line)], 'replace');
    },
    expire: async () => {
      const forgetful = await openSqlite({ directory: DATA_DIR, slots: new Slots(), changesTtlMs: 1 });
      const others = await forgetful.open(ORDERS, 'make');
      for (let n = 0; n < 3; n++) {
        await others.insert([BSON.serialize({ _id: 'expires' })], 'replace');
        await others.remove([makeBookmark({ _id: 'expires' })]);
        await pause(5); // changes of the same millisecond are kept
      }
      await forgetful.close();
    },
    close: async () => {
      objects.close();
      await store.close();
    },
  };
}

/** A database of a replica set. */
export async function mongoWorld(
  t: TestContext,
  folder: string,
  set: ReplicaSet,
  database: string,
  { FILES, keys, formats }: FilesGiven,
): Promise<EditionWorld> {
  const uri = withDatabase(set.uri, database);
  const client = new MongoClient(uri, { writeConcern: { w: 'majority' } });
  t.after(() => client.close());
  const orders = client.db().collection<{ _id: string }>(RESOURCE);
  await client.db().createCollection(RESOURCE);
  const objects = await objectsOf(FILES, keys);
  return {
    name: 'mongodb',
    settings: { ...(await settingsIn(folder, formats)), MONGODB_URI: uri, FILES, ...keys },
    objects,
    write: async (id, line) => {
      const row = line === null ? null : BSON.deserialize(documentOf(line), { promoteValues: false });
      await insist(async () => {
        if (row) await orders.replaceOne({ _id: id }, row, { upsert: true });
        else await orders.deleteOne({ _id: id });
      });
    },
    depose: () => stepDown({ set }),
    expire: async () => {
      const everywhere = { writeConcern: { w: set.members.length } };
      for (let n = 0; n < NOTES; n++) {
        const note = { appendOplogNote: 1, data: { filler: 'x'.repeat(NOTE_BYTES) } };
        await insist(() => client.db('admin').command(note));
        await insist(() => client.db('notes').collection('notes').insertOne({ n }, everywhere));
      }
    },
    close: async () => {
      objects.close();
      await client.db().dropDatabase();
      await client.close();
    },
  };
}

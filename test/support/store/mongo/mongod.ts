import { randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { MongoClient } from 'mongodb';
import { cleanLast } from '../../directory.ts';
import { findMongod } from './find-mongod.ts';
import { startReplicaSet, type ReplicaSet, type ReplicaSetOptions } from './replica-set.ts';

/**
 * Starts one mongod for the caller, or several as a replica set. When there is no mongod to start, resolves
 * with null and writes the reason to stderr. With REQUIRE_ALL=1 that is an error.
 */
export async function startMongod(options: ReplicaSetOptions = {}): Promise<ReplicaSet | null> {
  const found = await findMongod();
  if ('program' in found) return startReplicaSet(found.program, options);
  if (process.env.REQUIRE_ALL) throw new Error(`REQUIRE_ALL is set, but ${found.reason}`);
  if (!process.env.NO_MONGOD) process.stderr.write(`No mongod: ${found.reason}\n`);
  return null;
}

/**
 * Starts the mongod that tests share. Long tests insert millions of rows, which would become ever slower with
 * a cache of half a gigabyte. What other tests write must not push a test's changes out of the history.
 */
export function startSharedMongod(isLong: boolean): Promise<ReplicaSet | null> {
  return startMongod({ oplogMB: 2_048, ...(isLong && { cacheGB: 2 }) });
}

/**
 * Starts a mongod for one test, which may kill or pause it. Resolves with null and skips the test when there
 * is none.
 */
export async function ownMongod(t: TestContext, options: ReplicaSetOptions = {}): Promise<ReplicaSet | null> {
  const set = await startMongod(options);
  if (set) cleanLast(t, () => set.stop());
  else t.skip(await whyNoMongod());
  return set;
}

/**
 * The URI of a new database on a shared mongod. The database is dropped after the test. Resolves with null
 * and skips the test when there is no mongod. The server is the one of MONGODB_URI, the one started by
 * test/support/run.ts, or one that this process starts and stops.
 */
export async function testMongo(t: TestContext): Promise<string | null> {
  const shared = process.env.MONGODB_URI ?? process.env.TEST_MONGODB_URI ?? (await sharedMongod())?.uri;
  if (!shared) {
    t.skip(await whyNoMongod());
    return null;
  }
  const uri = withDatabase(shared, `sluice_test_${randomBytes(8).toString('hex')}`);
  cleanLast(t, async () => {
    const client = new MongoClient(uri);
    await client.db().dropDatabase();
    await client.close();
  });
  return uri;
}

/** The URI with another default database. */
export function withDatabase(uri: string, database: string): string {
  const parts = /^(mongodb(?:\+srv)?:\/\/[^/?]+)(?:\/[^?]*)?(\?.*)?$/.exec(uri);
  if (!parts) throw new TypeError(`not a MongoDB URI: ${uri}`);
  return `${parts[1] ?? ''}/${database}${parts[2] ?? ''}`;
}

/** The URI of a database of a mongod that a test takes away. Requests then wait half a second for it, and not three. */
export function impatient({ uri }: ReplicaSet, database: string): string {
  return `${withDatabase(uri, database)}&serverSelectionTimeoutMS=500`;
}

let own: Promise<ReplicaSet | null> | null = null;

/** Starts a mongod once in this process. It ends with the process. */
function sharedMongod(): Promise<ReplicaSet | null> {
  return (own ??= startSharedMongod(Boolean(process.env.LONG)));
}

/** The reason why no mongod can be started here. */
async function whyNoMongod(): Promise<string> {
  const found = await findMongod();
  return 'reason' in found ? found.reason : 'no mongod';
}

import { randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { MongoClient } from 'mongodb';
import { findMongod } from './find-mongod.ts';
import { ReplicaSet, type ReplicaSetOptions } from './replica-set.ts';

/**
 * Starts a mongod of its own (or several, as a replica set) for whoever calls; null, with the reason on stderr, where
 * there is none to start, which with REQUIRE_ALL=1 is an error.
 */
export async function startMongod(options: ReplicaSetOptions = {}): Promise<ReplicaSet | null> {
  const found = await findMongod();
  if ('program' in found) return ReplicaSet.start(found.program, options);
  if (process.env.REQUIRE_ALL) throw new Error(`REQUIRE_ALL is set, but ${found.reason}`);
  if (!process.env.NO_MONGOD) process.stderr.write(`No mongod: ${found.reason}\n`);
  return null;
}

/** The one that tests share. Long ones insert millions of rows, which a cache of half a gigabyte makes ever slower. */
export function startSharedMongod(isLong: boolean): Promise<ReplicaSet | null> {
  return startMongod(isLong ? { cacheGB: 2 } : {});
}

/** A mongod that belongs to one test, which may kill or pause it; null, and the test skipped, where there is none. */
export async function ownMongod(t: TestContext, options: ReplicaSetOptions = {}): Promise<ReplicaSet | null> {
  const set = await startMongod(options);
  if (set) t.after(() => set.stop());
  else t.skip(await whyNone());
  return set;
}

/**
 * The URI of a fresh database on a mongod that tests share, dropped after the test; null, and the test skipped, where there is
 * none. It is MONGODB_URI's server, or the one test/support/run.ts started, or one that this process starts and stops.
 */
export async function testMongo(t: TestContext): Promise<string | null> {
  const shared = process.env.MONGODB_URI ?? process.env.TEST_MONGODB_URI ?? (await sharedMongod())?.uri;
  if (!shared) {
    t.skip(await whyNone());
    return null;
  }
  const uri = withDatabase(shared, `sluice_test_${randomBytes(8).toString('hex')}`);
  t.after(async () => {
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

let own: Promise<ReplicaSet | null> | null = null;

/** Started once in this process, and ended with it. */
function sharedMongod(): Promise<ReplicaSet | null> {
  return (own ??= startSharedMongod(Boolean(process.env.LONG)));
}

async function whyNone(): Promise<string> {
  const found = await findMongod();
  return 'reason' in found ? found.reason : 'no mongod';
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientSession, MongoClient } from 'mongodb';
import { Copy, rowsAt, type Answer } from '../../support/resources/copy.ts';
import { serverOn } from '../../support/process/server.ts';
import { until } from '../../support/store/changes.ts';
import { testClient } from '../../support/store/mongo/mongo.ts';
import { testMongo } from '../../support/store/mongo/mongod.ts';
import { below, oneOf, randomFrom, type Random } from '../../support/store/random-collection.ts';
import { SEED } from '../../support/seed.ts';

const COLLECTIONS = ['a', 'b', 'c'] as const;
const ROUNDS = process.env.LONG ? 400 : 40;
/** Cursors of each follower that are continued in the end. */
const CONTINUED = 12;

/** A place that a follower was told, and its copy there. */
interface Told {
  readonly cursor: string;
  readonly rows: ReadonlyMap<string, string>;
}

/** A client that follows all the time, from the present on. */
async function followerOf(url: string, names: readonly string[]) {
  const isOne = names.length === 1;
  const path = isOne ? `/${names[0]}/changes?` : `/changes?resources=${names.join()}&`;
  const setsAt = async (server: string) => {
    const sets = await Promise.all(names.map((name) => rowsAt(`${server}/${name}/stream`)));
    return new Map(
      sets.flatMap((rows, n) =>
        [...rows].map(([id, text]) => [isOne ? id : `${names[n]} ${id}`, text] as const),
      ),
    );
  };
  const copy = new Copy();
  await copy.read(url + path);
  copy.rows = await setsAt(url);
  const told: Told[] = [];
  let hasLeft = false;
  const follows = copy.read(`${url}${path}since=${copy.cursor}&follow=true`, {
    until: () => {
      if (copy.cursor !== null && copy.cursor !== told.at(-1)?.cursor)
        told.push({ cursor: copy.cursor, rows: new Map(copy.rows) });
      return hasLeft;
    },
  });
  let ended: Answer | null = null;
  void follows.then((answer) => (ended = answer));
  return {
    names,
    path,
    told,
    setsAt,
    /** Resolves when the copy was these rows. */
    reached: (set: string) =>
      until(`the copy of ${names.join()} is the set`, () => {
        assert.equal(ended?.error ?? null, null, 'it follows on');
        return Promise.resolve(told.some(({ rows }) => shown(rows) === set));
      }),
    leave: async () => {
      hasLeft = true;
      await follows;
    },
  };
}

/** A write of some rows, mostly a transaction over several collections: all its changes have one time. */
async function write(client: MongoClient, random: Random, n: number): Promise<void> {
  const changes = Array.from({ length: 1 + below(random, 5) }, () => ({
    collection: oneOf(random, COLLECTIONS),
    id: below(random, 8),
    isRemoval: random() < 0.2,
  }));
  const apply = async (options: { session?: ClientSession }) => {
    for (const [at, { collection, id, isRemoval }] of changes.entries()) {
      const rows = client.db().collection<{ _id: string; n: number }>(collection);
      // Some ids are too long for the token of their change to be a place of clients.
      const _id = id === 0 ? 'long'.repeat(600) : `r${id}`;
      if (isRemoval) await rows.deleteOne({ _id }, options);
      else await rows.replaceOne({ _id }, { n: 100 * n + at }, { ...options, upsert: true });
    }
  };
  if (random() < 0.3) await apply({});
  else await client.withSession((session) => session.withTransaction(() => apply({ session })));
}

test('every cursor of followers of collections that transactions change together goes on at another server', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const client = testClient(t, uri);
  for (const name of COLLECTIONS) await client.db().createCollection(name);
  const settings = { MONGODB_URI: uri, EXPOSE: COLLECTIONS.join(), RATE_LIMIT: 'off' };
  const first = await serverOn(t, settings, { heartbeatMs: 5 });
  const followers = await Promise.all(
    [['a'], ['b'], ['c'], ['a', 'b'], [...COLLECTIONS]].map((names) => followerOf(first.url, names)),
  );
  const random = randomFrom(SEED);
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all(
      Array.from({ length: 1 + below(random, 3) }, (_, n) => write(client, random, 10 * round + n)),
    );
    for (const { setsAt, reached } of random() < 0.5 ? [] : followers)
      await reached(shown(await setsAt(first.url)));
  }
  await client.db().collection<{ _id: string }>('a').insertOne({ _id: 'last' });
  const other = await serverOn(t, settings);
  for (const { path, told, setsAt, reached, leave } of followers) {
    const set = shown(await setsAt(other.url));
    await reached(set);
    await leave();
    const step = Math.max(1, told.length / CONTINUED);
    for (let at = 0; at < told.length; at += step) {
      const { cursor, rows } = told[Math.floor(at)] ?? assert.fail();
      const copy = new Copy();
      copy.rows = new Map(rows);
      for (let isWhole = false; !isWhole; isWhole = copy.isUpToDate) {
        const { status, problem } = await copy.read(`${other.url}${path}since=${copy.cursor ?? cursor}`);
        assert.equal(status, 200, `seed ${SEED}, ${path}: ${problem}`);
      }
      assert.equal(shown(copy.rows), set, `seed ${SEED}, ${path}since=${cursor}`);
    }
  }
});

function shown(rows: ReadonlyMap<string, string>): string {
  return [...rows]
    .map((row) => row.join())
    .sort()
    .join('\n');
}

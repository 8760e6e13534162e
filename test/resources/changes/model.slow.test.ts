import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Room, roomOf } from '../../../src/resources/changes/room.ts';
import { BSON, Double, Int32, ObjectId, type Document } from '../../../src/store/bson.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { until } from '../../support/changes.ts';
import { Copy, rowsAt } from '../../support/copy.ts';
import { bearer, keyedServer, type KeyedServer, type KeyGiven } from '../../support/keyed.ts';
import { testClient } from '../../support/mongo.ts';
import { testMongo } from '../../support/mongod.ts';
import { below, oneOf, randomFrom, type Random } from '../../support/random-collection.ts';
import { serverOn, type StoreName, type TestServer } from '../../support/server.ts';

const HISTORIES = Number(process.env.HISTORIES ?? (process.env.LONG ? 500 : 3));
const FIRST = Number(process.env.SEED ?? 1);
const STEPS = 12;
/** Clients that follow all the time and ask for the same. */
const MATES = 3;

type Headers = Readonly<Record<string, string>>;

/** Clients with all rights, and some that see a part of the items. */
const KEYS: readonly KeyGiven[] = [
  { name: 'all' },
  { name: 'x', where: { items: { category: 'x' } } },
  { name: 'x-hides', where: { items: { category: 'x' } }, hide: { items: ['filler'] } },
];

/** A server whose feeds soon say that they are up to date. Null when the test was skipped. */
async function feedServer(t: TestContext, store: StoreName): Promise<KeyedServer | null> {
  const server = await keyedServer(t, store, KEYS, [], { RATE_LIMIT: 'off' }, { heartbeatMs: 20 });
  if (!server) return null;
  if (server.store.items.changes) {
    t.after(() => assert.equal(server.slots.taken, 0, 'every slot was released'));
    const images = { collMod: 'items', changeStreamPreAndPostImages: { enabled: true } };
    if (store === 'mongodb') await testClient(t, server.mongo).db().command(images);
    return server;
  }
  t.skip('this store has no changes');
  return null;
}

for (const store of ['sqlite', 'mongodb'] as const)
  test(`clients of ${store} that are cut anywhere have the set in the end, after ${HISTORIES} random histories`, async (t) => {
    const server = await feedServer(t, store);
    if (!server) return;
    const sizes = new Set<number>();
    const stay = Room.stay.bind(Room);
    t.mock.method(Room, 'stay', (...call: Parameters<typeof stay>) => {
      const stays = stay(...call);
      sizes.add(roomOf(call[0])?.size ?? 0);
      return stays;
    });
    for (let seed = FIRST; seed < FIRST + HISTORIES; seed++) {
      try {
        await runHistory(server, store, randomFrom(seed));
      } catch (error) {
        throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
      }
    }
    assert.ok(sizes.has(MATES), 'all who follow all the time were in one room');
  });

async function runHistory(server: TestServer, store: StoreName, random: Random): Promise<void> {
  const writer = new Writer(server, store, random);
  const query = oneOf(random, ['', 'fields=n', 'category=x', 'category=y&fields=n']);
  const headers = bearer(oneOf(random, KEYS).name);
  await writer.write();
  const follower = new Following(server, query, headers, random);
  const poller = await Polling.begin(server, query, headers, random);
  const mates = Array.from({ length: MATES }, () => new Mate(server, query, headers, random));
  for (let step = 0; step < STEPS; step++) {
    const acts = [writer.write, ...[follower, poller, ...mates].map((one) => one.step)];
    if (random() < 0.5) await Promise.all(acts.map((act) => act()));
    else for (const act of acts) await act();
  }
  await Promise.all([follower.finish(), poller.finish()]);
  const set = sorted(await rowsAt(`${server.url}/items/stream?${query}`, headers));
  assert.deepEqual(sorted(follower.copy.rows), set, 'the copy of the stream that follows');
  assert.deepEqual(sorted(poller.copy.rows), set, 'the copy of the changes since a cursor');
  await Promise.all(mates.map((mate) => mate.finish(set)));
  await writer.clear();
}

function sorted(rows: ReadonlyMap<string, string>): string[] {
  return [...rows.values()].sort();
}

/** Inserts, replaces and removes a few rows again and again. */
class Writer {
  readonly #server: TestServer;
  readonly #random: Random;
  readonly #ids: readonly unknown[];
  #n = 0;

  constructor(server: TestServer, store: StoreName, random: Random) {
    this.#server = server;
    this.#random = random;
    this.#ids = Array.from({ length: 3 + below(random, 40) }, (_, n) => idOf(n, store));
  }

  readonly write = async (): Promise<void> => {
    const random = this.#random;
    const chosen = Array.from({ length: 1 + below(random, 12) }, () => oneOf(random, this.#ids));
    const ids = [...new Map(chosen.map((id) => [String(id), id])).values()];
    if (random() < 0.35) await this.#remove(ids);
    else await this.#put(ids.map((_id) => this.#row(_id)));
  };

  clear(): Promise<void> {
    return this.#remove(this.#ids);
  }

  #row(_id: unknown): Document {
    const random = this.#random;
    const own = random() < 0.1 ? { id: 'own' } : {};
    const [category, filler] = [oneOf(random, ['x', 'y']), 'x'.repeat(below(random, 300))];
    return { _id, category, price: 1, n: this.#n++, filler, ...own };
  }

  async #put(rows: readonly Document[]): Promise<void> {
    const { refused } = await this.#server.store.items.insert(
      rows.map((row) => BSON.serialize(row)),
      'replace',
    );
    assert.deepEqual(refused, []);
  }

  async #remove(ids: readonly unknown[]): Promise<void> {
    await this.#server.store.items.remove(ids.map((_id) => makeBookmark({ _id })));
  }
}

/** Ids of several types. In the embedded store 7 and 7.0 take each other's place. */
function idOf(n: number, store: StoreName): unknown {
  const whole = Math.floor(n / 5);
  if (n % 5 === 0) return `"s${whole}\\ é\n`;
  if (n % 5 === 1) return `s${whole}`;
  if (n % 5 === 2) return new ObjectId(String(whole).padStart(24, 'a'));
  if (n % 5 === 3) return new Int32(whole);
  return new Double(store === 'sqlite' ? whole : whole + 0.5);
}

/** A client that reads the set, and then what changes, in one response. It is cut, and continues by its cursor. */
class Following {
  readonly copy: Copy;
  readonly #server: TestServer;
  readonly #path: string;
  readonly #random: Random;

  constructor(server: TestServer, query: string, headers: Headers, random: Random) {
    this.copy = new Copy(random() < 0.5, headers);
    this.#server = server;
    this.#path = `/items/stream?${query}`;
    this.#random = random;
  }

  readonly step = async (): Promise<void> => {
    const random = this.#random;
    await this.#read(random() < 0.8 ? below(random, 3_000) : Infinity);
  };

  finish(): Promise<void> {
    return this.#read(Infinity);
  }

  async #read(bytes: number): Promise<void> {
    const url = this.#server.url + this.copy.next(this.#path);
    const { status, error } = await this.copy.read(url, { bytes, until: ({ isUpToDate }) => isUpToDate });
    assert.deepEqual([status, error], [200, null]);
  }
}

/** A client that follows all the time. It is cut now and then, and continues by its cursor. */
class Mate {
  readonly #copy: Copy;
  readonly #url: string;
  readonly #path: string;
  readonly #random: Random;
  #isCut = false;
  #reading: ReturnType<Copy['read']>;

  constructor(server: TestServer, query: string, headers: Headers, random: Random) {
    this.#copy = new Copy(random() < 0.5, headers);
    this.#random = random;
    [this.#url, this.#path] = [server.url, `/items/stream?${query}`];
    this.#reading = this.#read();
  }

  readonly step = async (): Promise<void> => {
    if (this.#random() > 0.2) return;
    await this.#end();
    this.#reading = this.#read();
  };

  async finish(set: readonly string[]): Promise<void> {
    await until('a copy equals the set', () =>
      Promise.resolve(sorted(this.#copy.rows).join() === set.join()),
    );
    await this.#end();
  }

  #read(): ReturnType<Copy['read']> {
    return this.#copy.read(this.#url + this.#copy.next(this.#path), { until: () => this.#isCut });
  }

  async #end(): Promise<void> {
    this.#isCut = true;
    const { status, error } = await this.#reading;
    assert.deepEqual([status, error], [200, null]);
    this.#isCut = false;
  }
}

/** A client that reads the set once, and then asks for its changes in pieces. */
class Polling {
  readonly copy: Copy;
  readonly #server: TestServer;
  readonly #query: string;
  readonly #random: Random;

  private constructor(server: TestServer, query: string, headers: Headers, random: Random) {
    this.copy = new Copy(false, headers);
    this.#server = server;
    this.#query = query;
    this.#random = random;
  }

  static async begin(server: TestServer, query: string, headers: Headers, random: Random): Promise<Polling> {
    const polling = new Polling(server, query, headers, random);
    const head = await fetch(`${server.url}/items/stream?${query}`, { method: 'HEAD', headers });
    polling.copy.cursor = head.headers.get('changes-from');
    polling.copy.rows = await rowsAt(`${server.url}/items/stream?${query}`, headers);
    return polling;
  }

  readonly step = async (): Promise<void> => {
    const random = this.#random;
    const bytes = random() < 0.4 ? below(random, 2_000) : Infinity;
    if (random() < 0.3) await this.#read('follow=true', bytes, ({ isUpToDate }) => isUpToDate);
    else await this.#read(random() < 0.7 ? `limit=${1 + below(random, 10)}` : 'wait=0', bytes, () => false);
  };

  async finish(): Promise<void> {
    for (let pieces = 1; pieces < 1_000; pieces++) {
      await this.#read('limit=7', Infinity, () => false);
      if (this.copy.isUpToDate) return;
    }
    assert.fail('it comes to its end');
  }

  async #read(how: string, bytes: number, until: (copy: Copy) => boolean): Promise<void> {
    const url = `${this.#server.url}/items/changes?${this.#query}&since=${this.copy.cursor}&${how}`;
    const { status, error } = await this.copy.read(url, { bytes, until });
    assert.deepEqual([status, error], [200, null]);
  }
}

test('the changes of a snapshot begin exactly one tick after it: none comes twice, and none is missing', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const server = await serverOn(t, { MONGODB_URI: uri, RATE_LIMIT: 'off' });
  if (!server.store.items.changes) {
    t.skip('this store has no changes');
    return;
  }
  const client = testClient(t, uri);
  const items = client.db().collection<Document & { _id: string }>('items');
  const events = items.watch();
  t.after(() => events.close());
  await events.tryNext(); // from now on it has every event
  const item = (_id: string) => ({ _id, category: 'x', price: 1 });
  for (const id of ['a', 'b', 'c']) await items.insertOne(item(id));
  // All changes of a transaction have one time.
  await client.withSession((session) =>
    session.withTransaction(async () => {
      await items.insertMany([item('d'), item('e')], { session });
      await items.deleteOne({ _id: 'a' }, { session });
    }),
  );
  await items.insertOne(item('f'));
  const writes: { readonly time: bigint; readonly id: string; readonly isRemoved: boolean }[] = [];
  while (writes.length < 7) {
    const event = await events.next();
    assert.ok(event.operationType === 'insert' || event.operationType === 'delete');
    const time = event.clusterTime?.toBigInt() ?? assert.fail();
    writes.push({ time, id: event.documentKey._id, isRemoved: event.operationType === 'delete' });
  }
  for (const { time } of writes)
    for (const at of [time - 1n, time]) {
      const stream = await server.get(`/items/stream?fields=price&at=${at}`);
      const cursor = stream.headers.get('changes-from');
      const ids = (await stream.text()).match(/(?<=^\{"id":")\w/gm) ?? [];
      const before = writes.filter((one) => one.time <= at);
      const gone = before.filter(({ isRemoved }) => isRemoved).map(({ id }) => id);
      assert.deepEqual(
        [...ids],
        before.map(({ id }) => id).filter((id) => !gone.includes(id)),
      );
      const { lines, end } = await new Copy().read(`${server.url}/items/changes?since=${cursor}`);
      const changed = lines.flatMap((line) => /^\{(?:"removed":\{)?"id":"(\w)"/.exec(line)?.[1] ?? []);
      const after = writes.filter((one) => one.time > at).map(({ id }) => id);
      assert.deepEqual([...new Set(changed)].sort(), [...new Set(after)].sort(), `after ${at}`);
      assert.deepEqual([changed.length, end?.upToDate], [new Set(after).size, true]);
    }
});

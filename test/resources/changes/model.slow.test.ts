import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { AppError } from '../../../src/base/errors.ts';
import type { Sink } from '../../../src/pipeline/sink.ts';
import { Pages, pagesOf } from '../../../src/resources/changes/pages.ts';
import { BSON, Double, Int32, ObjectId, type Document } from '../../../src/store/values/bson.ts';
import { withOverrides } from '../../support/store/with-overrides.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { until } from '../../support/store/changes.ts';
import { keepImages } from '../../support/store/parts.ts';
import { Copy, rowsAt, type Answer } from '../../support/resources/copy.ts';
import { bearer, keyedServer, type KeyGiven } from '../../support/access/keyed.ts';
import { testClient } from '../../support/store/mongo/mongo.ts';
import { ownMongod, testMongo, withDatabase } from '../../support/store/mongo/mongod.ts';
import { below, oneOf, randomFrom, type Random } from '../../support/store/random-collection.ts';
import { serverOn, type StoreName, type TestServer } from '../../support/process/server.ts';

const HISTORIES = Number(process.env.HISTORIES ?? (process.env.LONG ? 500 : 3));
const FIRST = Number(process.env.SEED ?? 1);
const STEPS = 12;
/** Clients that follow all the time, ask for the same and have the same key, for each of two keys. */
const MATES = 3;

/** Where histories run. Each kill takes seconds, so there are fewer with kills. */
const PLACES = [
  { name: 'sqlite', store: 'sqlite', histories: HISTORIES, kills: false },
  { name: 'mongodb', store: 'mongodb', histories: HISTORIES, kills: false },
  { name: 'mongodb that is killed', store: 'mongodb', histories: Math.ceil(HISTORIES / 5), kills: true },
] as const;
type Place = (typeof PLACES)[number];

type Headers = Readonly<Record<string, string>>;

/** Clients with all rights, and some that see a part of the items. */
const KEYS: readonly KeyGiven[] = [
  { name: 'all' },
  { name: 'x', where: { items: { category: 'x' } } },
  { name: 'x-hides', where: { items: { category: 'x' } }, hide: { items: ['filler'] } },
];

/** What histories run on: a server whose feeds soon say that they are up to date, with pages whose readers stall. */
interface ModelWorld {
  readonly server: TestServer;
  readonly store: StoreName;
  readonly stalls: Stalls;
  /** How often pages had a number of followers when one came. */
  readonly sizes: Map<number, number>;
  /** Kills the database and starts it again. Null: nothing kills it. */
  readonly kill: (() => Promise<void>) | null;
}

/** Null when the test was skipped. */
async function groundOn(
  t: TestContext,
  { store, kills }: Pick<Place, 'store' | 'kills'>,
): Promise<ModelWorld | null> {
  const set = kills ? await ownMongod(t) : null;
  if (kills && !set) return null;
  const own = set && { MONGODB_URI: withDatabase(set.uri, 'sluice') };
  const settings = { RATE_LIMIT: 'off', ...own };
  const stalls = new Stalls();
  t.after(() => stalls.end()); // a server waits for its readers when it closes
  const server = await keyedServer(t, store, KEYS, [], settings, { heartbeatMs: 20 });
  if (!server) return null;
  t.after(() => assert.equal(server.slots.taken, 0, 'every slot was released'));
  await keepImages(t, own?.MONGODB_URI ?? server.mongo, 'items');
  const kill = async () => {
    const member = await set?.primary();
    await member?.kill();
    await member?.start();
    await set?.primary();
  };
  return { server, store, stalls, sizes: new Map(), kill: kills ? kill : null };
}

for (const { name: store, ...place } of PLACES)
  test(`${store}: clients that are cut anywhere have the set in the end, or the part of it that their key opens`, async (t) => {
    const world = await groundOn(t, place);
    if (!world) return;
    const { sizes } = world;
    const begin = performance.now();
    const stay = Pages.follow.bind(Pages);
    t.mock.method(Pages, 'follow', (...[question, at, reader]: Parameters<typeof stay>) => {
      const stays = stay(question, at, { ...reader, sink: world.stalls.around(reader.sink) });
      const size = pagesOf(question)?.size ?? 0;
      sizes.set(size, 1 + (sizes.get(size) ?? 0));
      return stays;
    });
    for (let seed = FIRST; seed < FIRST + place.histories; seed++) {
      try {
        await runHistory(world, randomFrom(seed));
      } catch (error) {
        throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
      }
    }
    const tally = { stalls: world.stalls.count, together: Object.fromEntries(sizes) };
    t.diagnostic(`${JSON.stringify(tally)}, ${Math.round(performance.now() - begin)} ms`);
  });

async function runHistory(world: ModelWorld, random: Random): Promise<void> {
  const { server, stalls, sizes, kill } = world;
  const writer = writerOf(world, random);
  const query = oneOf(random, ['', 'fields=n', 'category=x', 'category=y&fields=n']);
  const headers = bearer(oneOf(random, KEYS).name);
  const others = bearer(oneOf(random, KEYS).name);
  await writer.write();
  const follower = followingOf(world, query, headers, random);
  const poller = await pollingOf(world, query, headers, random);
  const mates = [headers, others].flatMap((own) =>
    Array.from({ length: MATES }, () => mateOf(world, query, own, random)),
  );
  stalls.begin(random);
  for (let step = 0; step < STEPS; step++) {
    stalls.open(0.3);
    const acts = [writer.write, ...[follower, poller, ...mates].map((one) => one.step)];
    if (kill && random() < 0.1) acts.splice(below(random, acts.length), 0, kill);
    if (random() < 0.5) await Promise.all(acts.map((act) => act()));
    else for (const act of acts) await act();
  }
  stalls.end();
  await Promise.all([follower.finish(), poller.finish()]);
  const setOf = async (own: Headers) => sorted(await rowsAt(`${server.url}/items/stream?${query}`, own));
  const set = await setOf(headers);
  assert.deepEqual(sorted(follower.copy.rows), set, 'the copy of the stream that follows');
  assert.deepEqual(sorted(poller.copy.rows), set, 'the copy of the changes since a cursor');
  const set2 = await setOf(others);
  await until('all who follow all the time and have one key got the same pages', () =>
    Promise.resolve(sizes.has(MATES)),
  );
  await Promise.all(mates.map((mate, n) => mate.finish(n < MATES ? set : set2)));
  await writer.clear();
}

/** The readers of pages that stall: their sinks take some writes only later in the history. */
class Stalls {
  count = 0;
  #random: Random | null = null;
  #gates: (() => void)[] = [];

  begin(random: Random): void {
    this.#random = randomFrom(below(random, 2 ** 31));
  }

  /** Those that stall go on: all, or some, so that others miss several changes. */
  open(share = 1): void {
    for (const open of this.#gates.splice(0))
      if (share === 1 || (this.#random?.() ?? 0) < share) open();
      else this.#gates.push(open);
  }

  end(): void {
    this.#random = null;
    this.open();
  }

  around(sink: Sink): Sink {
    return withOverrides<Sink>(sink, {
      write: (chunk) => {
        const taken = sink.write(chunk);
        if (!this.#random || this.#random() < 0.9) return taken;
        this.count++;
        const gate = new Promise<void>((open) => this.#gates.push(open));
        return Promise.all([taken, gate]).then(() => undefined);
      },
    });
  }
}

/** Checks how an answer began and ended. A database that is killed may have been away. Returns whether it was there. */
function isSound(
  { status, error }: Pick<Answer, 'status' | 'error'>,
  { kill }: Pick<ModelWorld, 'kill'>,
): boolean {
  const isAway = kill !== null && (status === 503 || error?.code === 'store-unavailable');
  if (!isAway) assert.deepEqual([status, error], [200, null]);
  return !isAway;
}

function sorted(rows: ReadonlyMap<string, string>): string[] {
  return [...rows.values()].sort();
}

/** Inserts, replaces and removes a few rows again and again. */
function writerOf({ server, store, kill }: ModelWorld, random: Random) {
  const all = Array.from({ length: 3 + below(random, 40) }, (_, n) => idOf(n, store));
  let n = 0;
  const rowOf = (_id: unknown): Document => {
    const own = random() < 0.1 ? { id: 'own' } : {};
    const category = oneOf(random, ['x', 'y']);
    const filler = 'x'.repeat(below(random, 300));
    return { _id, category, price: 1, n: n++, filler, ...own };
  };
  /** Writes, again while the database is away. */
  const written = async <T>(write: (items: TestServer['store']['items']) => Promise<T>): Promise<T> => {
    for (;;)
      try {
        return await write(server.store.items);
      } catch (error) {
        if (!kill || !(error instanceof AppError) || error.code !== 'store-unavailable') throw error;
      }
  };
  const remove = async (ids: readonly unknown[]) => {
    const keys = ids.map((_id) => makeBookmark({ _id }));
    await written((items) => items.remove(keys));
  };
  return {
    write: async (): Promise<void> => {
      const chosen = Array.from({ length: 1 + below(random, 12) }, () => oneOf(random, all));
      const ids = [...new Map(chosen.map((id) => [String(id), id])).values()];
      if (random() < 0.35) return remove(ids);
      const rows = ids.map((_id) => BSON.serialize(rowOf(_id)));
      const { refused } = await written((items) => items.insert(rows, 'replace'));
      assert.deepEqual(refused, []);
    },
    clear: () => remove(all),
  };
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
function followingOf(world: ModelWorld, query: string, headers: Headers, random: Random) {
  const copy = new Copy(random() < 0.5, headers);
  const read = async (bytes: number): Promise<boolean> => {
    const url = world.server.url + copy.next(`/items/stream?${query}`);
    return isSound(await copy.read(url, { bytes, until: ({ isUpToDate }) => isUpToDate }), world);
  };
  return {
    copy,
    step: async (): Promise<void> => {
      await read(random() < 0.8 ? below(random, 3_000) : Infinity);
    },
    finish: async (): Promise<void> => {
      while (!(await read(Infinity)));
    },
  };
}

/** A client that follows all the time. It is cut now and then, and continues by its cursor. */
function mateOf(world: ModelWorld, query: string, headers: Headers, random: Random) {
  const copy = new Copy(random() < 0.5, headers);
  let isCut = false;
  const read = async (): Promise<void> => {
    const url = () => world.server.url + copy.next(`/items/stream?${query}`);
    while (!isSound(await copy.read(url(), { until: () => isCut }), world));
  };
  let reading = read();
  const end = async (): Promise<void> => {
    isCut = true;
    world.stalls.open();
    await reading;
    isCut = false;
  };
  return {
    step: async (): Promise<void> => {
      if (random() > 0.2) return;
      await end();
      reading = read();
    },
    finish: async (set: readonly string[]): Promise<void> => {
      await until('a copy equals the set', () => Promise.resolve(sorted(copy.rows).join() === set.join()));
      await end();
    },
  };
}

/** A client that reads the set once, and then asks for its changes in pieces. */
async function pollingOf(world: ModelWorld, query: string, headers: Headers, random: Random) {
  const items = `${world.server.url}/items`;
  const copy = new Copy(false, headers);
  const head = await fetch(`${items}/stream?${query}`, { method: 'HEAD', headers });
  copy.cursor = head.headers.get('changes-from');
  copy.rows = await rowsAt(`${items}/stream?${query}`, headers);
  const read = async (how: string, bytes = Infinity): Promise<void> => {
    const until = ({ isUpToDate }: Copy) => how === 'follow=true' && isUpToDate;
    const url = `${items}/changes?${query}&since=${copy.cursor}&${how}`;
    isSound(await copy.read(url, { bytes, until }), world);
  };
  return {
    copy,
    step: async (): Promise<void> => {
      const bytes = random() < 0.4 ? below(random, 2_000) : Infinity;
      if (random() < 0.3) await read('follow=true', bytes);
      else await read(random() < 0.7 ? `limit=${1 + below(random, 10)}` : 'wait=0', bytes);
    },
    finish: async (): Promise<void> => {
      for (let pieces = 1; pieces < 1_000; pieces++) {
        await read('limit=7');
        if (copy.isUpToDate) return;
      }
      assert.fail('it comes to its end');
    },
  };
}

test('the changes of a snapshot begin exactly one tick after it: none comes twice, and none is missing', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const server = await serverOn(t, { MONGODB_URI: uri, RATE_LIMIT: 'off' });
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

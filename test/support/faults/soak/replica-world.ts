import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Decimal128, type Db, type Document } from 'mongodb';
import { childServer, type ChildServer } from '../../process/child-server.ts';
import { run } from '../../process/commands.ts';
import { temporaryFolder } from '../../directory.ts';
import { freePorts } from '../../ports.ts';
import { bearer, keysText, type KeyGiven } from '../../access/keyed.ts';
import { testClient } from '../../store/mongo/mongo.ts';
import { ownMongod, withDatabase } from '../../store/mongo/mongod.ts';
import { below, oneOf, type Random } from '../../store/random-collection.ts';

/** Rows that no writer changes: every whole answer about them is known. */
export const STABLE_ROWS = 20_000;
export const STABLE_IDS = Array.from({ length: STABLE_ROWS }, (_, n) => `s${String(n).padStart(6, '0')}`);
/** Keys of rows that writers insert, change and remove. */
const CHANGING_IDS = 2_000;
const LOADED_AT_ONCE = 500;

const ALL: KeyGiven = { name: 'all' };
/** Sees the orders of one tenant, without what they earn. */
const PART: KeyGiven = {
  name: 'part',
  where: { orders: { tenant: 'acme' } },
  hide: { orders: ['margin', 'lines.cost'] },
};

export type ReplicaWorld = NonNullable<Awaited<ReturnType<typeof openWorld>>>;

/**
 * Two servers on a replica set of three members, with keys, and the processes that change its data. Null, and the test is
 * skipped, without a mongod.
 */
export async function openWorld(t: TestContext) {
  const set = await ownMongod(t, { members: 3, electionMs: 2_000 });
  if (!set) return null;
  const uri = withDatabase(set.uri, 'soak');
  const db = testClient(t, `${uri}&w=majority`).db();
  const folder = await temporaryFolder(t);
  const API_KEYS_FILE = join(folder, 'keys.json');
  const urls = (await freePorts(2)).map((port) => `http://127.0.0.1:${port}`);
  const servers: ChildServer[] = [];
  const faults: string[] = [];
  let loads = 0;

  const readLog = async ({ log }: ChildServer): Promise<void> => {
    for await (const line of log) if (line.level >= 50) faults.push(JSON.stringify(line));
  };
  const start = async (n: number): Promise<void> => {
    const PORT = new URL(urls[n] ?? '').port;
    const limits = { RATE_LIMIT: 'off', STREAM_LIMIT: 'off', EXPORT_LIMIT: '1000', SAMPLE: 'off' };
    const settings = { MONGODB_URI: uri, PORT, EXPOSE: 'stable,orders,loads', API_KEYS_FILE, ...limits };
    const server = await childServer(t, settings);
    servers[n] = server;
    void readLog(server);
  };
  /** Replaces the file of keys at once: no server reads half of it. */
  const giveKeys = (keys: readonly KeyGiven[]): void => {
    writeFileSync(`${API_KEYS_FILE}.next`, keysText(keys));
    renameSync(`${API_KEYS_FILE}.next`, API_KEYS_FILE);
  };
  const untilPartGets = async (status: number): Promise<void> => {
    for (const url of urls)
      await insist(async () => {
        const answer = await fetch(`${url}/orders?limit=1`, { headers: bearer(PART.name) });
        await answer.text();
        if (answer.status !== status) throw new Error(`${url} answers ${answer.status}, not ${status} yet`);
      });
  };

  await fill(db);
  giveKeys([ALL, PART]);
  for (const n of urls.keys()) await start(n);
  return {
    set,
    db,
    /** The first is killed and started again, the second stays. */
    servers,
    urls,
    /** Lines of the servers' logs that report a fault. */
    faults,
    headers: (name: string): Record<string, string> => bearer(name),
    /** Starts a server again after it was killed. */
    start,
    /** Takes the key of the part away until no server takes it, and gives it back. */
    takeKeyAway: async (): Promise<void> => {
      giveKeys([ALL]);
      await untilPartGets(401);
      giveKeys([ALL, PART]);
      await untilPartGets(200);
    },
    /** One random change of an order, made until a majority has acknowledged it. */
    write: async (random: Random, n: number): Promise<void> => {
      const orders = db.collection('orders');
      const _id = `o${below(random, CHANGING_IDS)}` as never;
      const act = below(random, 5);
      await insist(async () => {
        if (act === 0) await orders.deleteOne({ _id });
        else if (act === 1) await orders.updateOne({ _id }, { $set: { margin: n } });
        else if (act === 2)
          await orders.updateOne({ _id }, { $set: { tenant: oneOf(random, ['acme', 'FOREIGN']) } });
        else await orders.replaceOne({ _id }, orderOf(random, n), { upsert: true });
      });
    },
    /** Imports rows with the command line. Resolves with the number of all rows imported so far. */
    load: async (): Promise<number> => {
      const first = loads * LOADED_AT_ONCE;
      const file = join(folder, 'load.ndjson');
      const rows = Array.from({ length: LOADED_AT_ONCE }, (_, n) => ({ _id: `l${first + n}`, n: first + n }));
      writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
      const args = ['import', file, '--into', 'loads', '--on-conflict', 'replace'];
      await insist(() => run(args, { MONGODB_URI: uri }));
      loads++;
      return loads * LOADED_AT_ONCE;
    },
  };
}

async function fill(db: Db): Promise<void> {
  const stable = STABLE_IDS.map((_id, n): Document => {
    const odd = n % 7 === 0 ? { extra: [n, { deep: null }] } : {};
    return { _id, group: `g${n % 10}`, n, ...typed(n), ...odd };
  });
  await db.createCollection('orders', { changeStreamPreAndPostImages: { enabled: true } });
  await db.collection('stable').insertMany(stable);
  await db.collection('loads').insertOne({ _id: 'l0' as never, n: 0 });
  await db.collection('orders').createIndex({ tenant: 1, _id: 1 });
  await db.collection('stable').createIndex({ group: 1, _id: 1 });
  await db.collection('stable').createIndex({ n: 1, _id: 1 });
}

function typed(n: number): Document {
  return { price: Decimal128.fromString(`${n}.50`), at: new Date(1_700_000_000_000 + n * 1_000), big: n / 3 };
}

function orderOf(random: Random, n: number): Document {
  const lines = [{ sku: `s${below(random, 9)}`, cost: n }];
  return { tenant: oneOf(random, ['acme', 'FOREIGN']), n, margin: n, lines, ...typed(below(random, 1_000)) };
}

/** Tries again while the set has no primary. */
export async function insist<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++)
    try {
      return await work();
    } catch (error) {
      if (attempt === 60) throw error;
      await pause(500);
    }
}

import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Decimal128, MongoClient, type Db, type Document } from 'mongodb';
import { childServer, type ChildServer } from '../../process/child-server.ts';
import { run } from '../../process/commands.ts';
import { temporaryFolder } from '../../engine/engines.ts';
import { freePorts } from '../../ports.ts';
import { bearer, keysText, type KeyGiven } from '../../access/keyed.ts';
import { ownMongod } from '../../store/mongo/mongod.ts';
import { below, oneOf, type Random } from '../../store/random-collection.ts';
import type { ReplicaSet } from '../../store/mongo/replica-set.ts';

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

/** Two servers on a replica set of three members, with keys, and the processes that change its data. */
export class ReplicaWorld {
  readonly set: ReplicaSet;
  readonly db: Db;
  /** The first is killed and started again, the second stays. */
  readonly servers: ChildServer[] = [];
  readonly urls: readonly string[];
  /** Lines of the servers' logs that report a fault. */
  readonly faults: string[] = [];
  readonly #t: TestContext;
  readonly #keysFile: string;
  readonly #folder: string;
  #loads = 0;

  private constructor(t: TestContext, set: ReplicaSet, db: Db, folder: string, ports: readonly number[]) {
    this.#t = t;
    this.set = set;
    this.db = db;
    this.#folder = folder;
    this.#keysFile = join(folder, 'keys.json');
    this.urls = ports.map((port) => `http://127.0.0.1:${port}`);
  }

  /** Null, and the test is skipped, without a mongod. */
  static async open(t: TestContext): Promise<ReplicaWorld | null> {
    const set = await ownMongod(t, { members: 3, electionMs: 2_000 });
    if (!set) return null;
    const client = await new MongoClient(`${set.uri}&w=majority`).connect();
    t.after(() => client.close());
    const world = new ReplicaWorld(t, set, client.db('soak'), await temporaryFolder(t), await freePorts(2));
    await world.#fill();
    world.giveKeys([ALL, PART]);
    for (const n of world.urls.keys()) await world.start(n);
    return world;
  }

  headers(name: string): Record<string, string> {
    return bearer(name);
  }

  /** Starts a server, or starts it again after it was killed. */
  async start(n: number): Promise<void> {
    const server = await childServer(this.#t, {
      MONGODB_URI: this.#uri,
      PORT: new URL(this.urls[n] ?? '').port,
      EXPOSE: 'stable,orders,loads',
      API_KEYS_FILE: this.#keysFile,
      ...{ RATE_LIMIT: 'off', STREAM_LIMIT: 'off', EXPORT_LIMIT: '1000', SAMPLE: 'off' },
    });
    this.servers[n] = server;
    void this.#readLog(server);
  }

  /** Takes the key of the part away until no server takes it, and gives it back. */
  async takeKeyAway(): Promise<void> {
    this.giveKeys([ALL]);
    await this.#untilPartGets(401);
    this.giveKeys([ALL, PART]);
    await this.#untilPartGets(200);
  }

  async #untilPartGets(status: number): Promise<void> {
    for (const url of this.urls)
      await insist(async () => {
        const answer = await fetch(`${url}/orders?limit=1`, { headers: this.headers(PART.name) });
        await answer.text();
        if (answer.status !== status) throw new Error(`${url} answers ${answer.status}, not ${status} yet`);
      });
  }

  /** Replaces the file of keys at once: no server reads half of it. */
  giveKeys(keys: readonly KeyGiven[]): void {
    const next = `${this.#keysFile}.next`;
    writeFileSync(next, keysText(keys));
    renameSync(next, this.#keysFile);
  }

  /** One random change of an order, made until a majority has acknowledged it. */
  async write(random: Random, n: number): Promise<void> {
    const orders = this.db.collection('orders');
    const _id = `o${below(random, CHANGING_IDS)}` as never;
    const act = below(random, 5);
    await insist(async () => {
      if (act === 0) await orders.deleteOne({ _id });
      else if (act === 1) await orders.updateOne({ _id }, { $set: { margin: n } });
      else if (act === 2)
        await orders.updateOne({ _id }, { $set: { tenant: oneOf(random, ['acme', 'FOREIGN']) } });
      else await orders.replaceOne({ _id }, orderOf(random, n), { upsert: true });
    });
  }

  /** Imports rows with the command line. Resolves with the number of all rows imported so far. */
  async load(): Promise<number> {
    const first = this.#loads * LOADED_AT_ONCE;
    const file = join(this.#folder, 'load.ndjson');
    const rows = Array.from({ length: LOADED_AT_ONCE }, (_, n) => ({ _id: `l${first + n}`, n: first + n }));
    writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    const args = ['import', file, '--into', 'loads', '--on-conflict', 'replace'];
    await insist(() => run(args, { MONGODB_URI: this.#uri }));
    this.#loads++;
    return this.#loads * LOADED_AT_ONCE;
  }

  get #uri(): string {
    return this.set.uri.replace('/?', '/soak?');
  }

  async #fill(): Promise<void> {
    const stable = STABLE_IDS.map((_id, n): Document => {
      const odd = n % 7 === 0 ? { extra: [n, { deep: null }] } : {};
      return { _id, group: `g${n % 10}`, n, ...typed(n), ...odd };
    });
    await this.db.createCollection('orders', { changeStreamPreAndPostImages: { enabled: true } });
    await this.db.collection('stable').insertMany(stable);
    await this.db.collection('loads').insertOne({ _id: 'l0' as never, n: 0 });
    await this.db.collection('orders').createIndex({ tenant: 1, _id: 1 });
    await this.db.collection('stable').createIndex({ group: 1, _id: 1 });
    await this.db.collection('stable').createIndex({ n: 1, _id: 1 });
  }

  async #readLog(server: ChildServer): Promise<void> {
    for await (const line of server.log) if (line.level >= 50) this.faults.push(JSON.stringify(line));
  }
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

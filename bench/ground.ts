import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { startMongod, withDatabase } from '../test/support/store/mongo/mongod.ts';
import type { Ground } from './kinds/kind.ts';
import { ORDER_INDEXES, writeOrders } from './orders.ts';
import { runToEnd } from './process.ts';
import type { StoreName } from './results.ts';

const CLI = join(import.meta.dirname, '../dist/process/cli.js');
/** The size of mongod's cache. It holds all of a million items, and most of ten million. */
const CACHE_GB = Math.max(0.5, Math.min(4, Math.floor(totalmem() / 2 ** 30 / 4)));

/** A store with items, which are the same every time. */
export interface OpenGround extends Ground {
  close(): Promise<void>;
}

/** A database server for all grounds of a run. */
export interface DatabaseServer {
  readonly uri: string;
  readonly version: string;
  stop(): Promise<void>;
}

/** Opens the server of MONGODB_URI, or starts a mongod. Rejects with an Error when there is none to start. */
export async function openDatabaseServer(): Promise<DatabaseServer> {
  const given = process.env.MONGODB_URI;
  const own = given === undefined ? await startMongod({ cacheGB: CACHE_GB }) : null;
  const uri = given ?? own?.uri;
  if (uri === undefined)
    throw new Error('the bench needs a mongod: set MONGODB_URI or MONGOD, or put one on PATH');
  const version = await withClient(uri, async (client) => {
    const info = await client.db('admin').command({ buildInfo: 1 });
    return String(info.version);
  });
  return { uri, version, stop: async () => own?.stop() };
}

/** The contents of a ground: items, and perhaps as many orders. */
export interface Wanted {
  readonly store: StoreName;
  readonly rows: number;
  readonly withOrders: boolean;
  /** The checkout whose program makes the ground and alone uses it. undefined: this one. */
  readonly revision?: { readonly name: string; readonly cli: string };
}

export async function openGround(wanted: Wanted, server: DatabaseServer | null): Promise<OpenGround> {
  return wanted.store === 'sqlite' || !server ? embedded(wanted) : onServer(wanted, server.uri);
}

async function embedded({ rows, withOrders, revision }: Wanted): Promise<OpenGround> {
  const cli = revision?.cli ?? CLI;
  const directory = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  const environment = { DATA_DIR: directory };
  await seed(cli, rows, environment);
  if (withOrders) await seedOrders(cli, rows, environment);
  return {
    store: 'sqlite',
    rows,
    mongodPid: null,
    environment,
    openCursors: () => Promise.resolve(0),
    changeStreams: () => Promise.resolve(0),
    close: () => rm(directory, { recursive: true, force: true }),
  };
}

async function onServer({ rows, withOrders, revision }: Wanted, server: string): Promise<OpenGround> {
  const cli = revision?.cli ?? CLI;
  // Two checkouts on one database would take up each other's exports.
  const suffix = revision ? `_at_${revision.name.replace(/\W/g, '_').slice(0, 32)}` : '';
  const uri = withDatabase(server, `sluice_bench_${rows}${suffix}`);
  // The items stay for the next run on this server: ten million take a quarter of an hour.
  const count = (name: string) =>
    withClient(uri, (client) => client.db().collection(name).estimatedDocumentCount());
  if ((await count('items')) !== rows) {
    await withClient(uri, (client) => client.db().dropDatabase()); // remains of an interrupted run
    await seed(cli, rows, { MONGODB_URI: uri });
  }
  if (withOrders && (await count('orders')) !== rows) {
    await withClient(uri, (client) => client.db().collection('orders').drop());
    await seedOrders(cli, rows, { MONGODB_URI: uri });
  }
  const directory = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  const resources = join(directory, 'resources.json');
  await writeFile(resources, JSON.stringify({ resources: { items: {}, orders: {} } }));
  const status = async () =>
    (await withClient(uri, (client) => client.db('admin').command({ serverStatus: 1 }))) as {
      pid: number;
      metrics: { cursor: { open: { total: number } } };
    };
  const isLocal = /\/\/([^@/]*@)?(127\.0\.0\.1|localhost)[:/]/.test(uri);
  return {
    store: 'mongodb',
    rows,
    mongodPid: isLocal ? (await status()).pid : null,
    environment: { MONGODB_URI: uri, ...(withOrders && { RESOURCES_FILE: resources }) },
    openCursors: async () => (await status()).metrics.cursor.open.total,
    changeStreams: () => withClient(uri, countChangeStreams),
    close: async () => {
      await rm(directory, { recursive: true, force: true });
      await withClient(uri, (client) => client.db().collection('users').deleteMany({}));
    },
  };
}

async function seed(cli: string, rows: number, environment: Readonly<Record<string, string>>): Promise<void> {
  await runToEnd({ file: cli, args: ['import', '--generate', String(rows), '--seed', '1'], environment });
}

/** Makes the orders: a file, and its import. */
async function seedOrders(
  cli: string,
  rows: number,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-bench-orders-'));
  try {
    const file = join(directory, 'orders.ndjson');
    await writeOrders(file, rows);
    const indexes = ORDER_INDEXES.flatMap((index) => ['--index', index]);
    await runToEnd({ file: cli, args: ['import', file, '--into', 'orders', ...indexes], environment });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The cursors of change streams that the clients of a server have open, also those that wait at this moment. */
async function countChangeStreams(client: MongoClient): Promise<number> {
  const cursors = await client
    .db('admin')
    .aggregate([
      { $currentOp: { allUsers: true, idleCursors: true } },
      { $match: { cursor: { $exists: true } } },
    ])
    .toArray();
  return cursors.filter((operation) => JSON.stringify(operation).includes('$changeStream')).length;
}

async function withClient<T>(uri: string, work: (client: MongoClient) => Promise<T>): Promise<T> {
  const client = await new MongoClient(uri).connect();
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

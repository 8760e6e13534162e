/**
 * The cost of `fields=id,price` with a projection: node --import tsx bench/micro/fields.ts [rows]
 *
 * Runs the same chain of finds over the data lane twice: once with whole rows, of which the transcoder leaves
 * out the rest, as the server does, and once with a projection in each find. Both write the same bytes, which
 * is asserted. Needs a mongod, as the bench does.
 */
import assert from 'node:assert/strict';
import { ITEM_COLLECTION } from '../../src/resources/item-collection.ts';
import { Selection } from '../../src/rows/selection.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import { chain, FIRST_BATCH } from '../../src/pipeline/chain.ts';
import { COMMAND_LIMIT_MS, GRACE_MS, MongoConnection } from '../../src/store/mongo/connection.ts';
import { driverWay } from '../../src/store/mongo/read/driver.ts';
import { isForgotten, mayRetry, translate } from '../../src/store/mongo/errors.ts';
import { Finder } from '../../src/store/mongo/read/find.ts';
import { Reads } from '../../src/store/mongo/read/read.ts';
import { openLane, type FindWay } from '../../src/store/mongo/lane/lane.ts';
import { Layouts } from '../../src/store/mongo/collection/layouts.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import type { RowReader, Plan } from '../../src/store/store.ts';
import { crc32 } from '../../src/pipeline/crc32.ts';
import { openDatabaseServer, openGround } from '../ground.ts';
import { median } from '../results.ts';
import { cpuSeconds } from '../usage.ts';
import { printMachine } from './turns.ts';

const ROUNDS = 5;
const CHUNK_BYTES = 16_000;
const FIELDS = new Selection({ fields: ['id', 'price'] });
const PLANS: Readonly<Record<string, Plan>> = {
  'in order of id': { sort: '_id', direction: 1 },
  'in order of price': { sort: 'price', direction: 1 },
};

const server = await openDatabaseServer();
const rows = Number(process.argv[2]) || 300_000;
const ground = await openGround({ store: 'mongodb', rows, withOrders: false }, server);
const mongodPid = ground.mongodPid ?? assert.fail('the CPU of a mongod elsewhere cannot be seen');
const connection = new MongoConnection(ground.environment.MONGODB_URI ?? '');
const slots = new Slots();
const transcoder = createTranscoder(slots);
const onWarning = (message: string) => process.stderr.write(`${message}\n`);
const layouts = new Layouts(connection, { ...ITEM_COLLECTION, manage: true, onWarning });
const lane = openLane(connection, {
  slots,
  driver: driverWay(connection, slots, onWarning),
  onWarning,
  errors: { isForgotten, mayRetry, translate },
  limitMs: COMMAND_LIMIT_MS,
  graceMs: GRACE_MS,
});
const projected: FindWay = {
  find: (command, signal, when) => lane.find({ ...command, projection: { _id: 1, price: 1 } }, signal, when),
};
const itemsOf = (way: FindWay) => new Reads(layouts, new Finder(way, layouts), slots);
const candidates = { 'whole rows': itemsOf(lane), 'a projection': itemsOf(projected) };
await layouts.start();

printMachine();
for (const [name, plan] of Object.entries(PLANS)) await measure(name, plan);

layouts.close();
lane.close();
await connection.close();
await ground.close();
await server.stop();

interface Cost {
  readonly wall: number;
  readonly node: number;
  readonly mongod: number;
}

/** Measures the seconds for all rows. The candidates alternate, and the first round warms up. */
async function measure(name: string, plan: Plan): Promise<void> {
  const costs = new Map<string, Cost[]>(Object.keys(candidates).map((key) => [key, []]));
  const sums = new Set<number>();
  for (let round = -1; round < ROUNDS; round++)
    for (const [key, items] of Object.entries(candidates)) {
      const mongod = cpuSeconds(mongodPid);
      const cpu = process.cpuUsage();
      const started = performance.now();
      sums.add(await write(items, plan));
      const { user, system } = process.cpuUsage(cpu);
      const cost = {
        wall: (performance.now() - started) / 1e3,
        node: (user + system) / 1e6,
        mongod: cpuSeconds(mongodPid) - mongod,
      };
      if (round >= 0) costs.get(key)?.push(cost);
    }
  assert.equal(sums.size, 1, 'all write the same bytes');
  for (const [key, all] of costs) {
    const micros = (pick: (cost: Cost) => number) =>
      ((median(all.map(pick)) * 1e6) / ground.rows).toFixed(2).padStart(6);
    process.stdout.write(
      `${name}, ${key}: ${micros((cost) => cost.wall)} µs a row; CPU of node ${micros((cost) => cost.node)}, of mongod ${micros((cost) => cost.mongod)}\n`,
    );
  }
}

/** Reads and writes the set as a stream does. Resolves with the CRC-32 of the text. */
async function write(items: RowReader, plan: Plan): Promise<number> {
  const { signal } = new AbortController();
  const encoder = transcoder.encoder('lines', FIELDS);
  let crc = 0;
  const first = await items.read(plan, {}, FIRST_BATCH, signal);
  for await (const batch of chain(items, plan, first, Infinity, signal)) {
    for (const chunk of encoder.encode(batch, CHUNK_BYTES)) crc = crc32(chunk, crc);
    batch.release();
  }
  encoder.close();
  return crc;
}

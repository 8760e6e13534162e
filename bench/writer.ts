/**
 * node bench/writer.ts ROWS
 *
 * Changes the field `note` of the first ROWS orders, in turn, and at last that of the next one. A reader of changes gets
 * rows as they are when it reads them, so only a row that nothing else changes proves that it has all changes before.
 * Each line of stdin is a WriteOrder, and the answer to it a Written. The program writes into the store of the environment: into MongoDB by the driver, and into the embedded store by
 * sluice's own adapter, because only that may write it.
 */
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { pino } from 'pino';
import { readConfig } from '../src/settings/config.ts';
import { BSON } from '../src/store/values/bson.ts';
import { openStore } from '../src/server/open-store.ts';
import { Slots } from '../src/store/turns/slots.ts';
import { orderId, orderOf } from './orders.ts';
import type { WriteOrder, Written } from './writing.ts';

const rows = Number(process.argv[2]);
const TURN_MS = 20;
const MOST_AT_ONCE = 1_000;

/** Writes these notes to orders, by their index. Resolves when they are acknowledged. */
type Write = (notes: ReadonlyMap<number, string>) => Promise<void>;

async function openWrite(): Promise<Write> {
  const uri = process.env.MONGODB_URI;
  if (uri !== undefined) {
    const collection = (await new MongoClient(uri).connect()).db().collection('orders');
    return async (notes) => {
      const updates = Array.from(notes, ([index, note]) => ({
        updateOne: { filter: { _id: orderId(index) }, update: { $set: { note } } },
      }));
      const { matchedCount } = await collection.bulkWrite(updates, { ordered: false });
      if (matchedCount !== updates.length) throw new Error('an order is missing');
    };
  }
  const store = await openStore(
    readConfig(process.env),
    new Slots(),
    pino({ level: 'warn' }, pino.destination(2)),
  );
  const { collections } = await store.list();
  const { declaration } = collections.find(({ collection }) => collection === 'orders') ?? {};
  if (!declaration) throw new Error('the store has no orders');
  const collection = await store.open(declaration, 'make');
  return async (notes) => {
    const documents = Array.from(notes, ([index, note]) => BSON.serialize(orderOf(index, note)));
    const { written } = await collection.insert(documents, 'replace');
    if (written !== documents.length) throw new Error('an order was refused');
  };
}

const write = await openWrite();
let next = 0;

async function run({ updates, perSecond, mark }: WriteOrder): Promise<Written> {
  const started = performance.now();
  const began = performance.timeOrigin + started;
  for (let done = 0; done < updates;) {
    const due = Math.min(updates, Math.ceil(((performance.now() - started + TURN_MS) / 1000) * perSecond));
    const most = Math.min(due - done, MOST_AT_ONCE, rows);
    if (most <= 0) await pause(TURN_MS);
    else await write(new Map(Array.from({ length: most }, () => [next % rows, `n${next++}`])));
    done += Math.max(0, most);
  }
  await write(new Map([[rows, mark]]));
  return { began, updates, seconds: (performance.now() - started) / 1000 };
}

process.stdout.write(`${JSON.stringify({ msg: 'listening', url: null })}\n`);
for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await run(JSON.parse(line) as WriteOrder))}\n`);
process.exit(); // the store is open

/**
 * The limit a stream is judged by: the bare keyset chain over the same store, its bytes thrown away. Prints one JSON
 * line with rows and seconds for each line read from stdin (the sort).
 * MONGODB_URI=... node --import tsx bench/limits/chain.ts
 */
import { createInterface } from 'node:readline';
import { pino } from 'pino';
import { readConfig } from '../../src/config.ts';
import { openStore } from '../../src/main.ts';
import { chain, FIRST_BATCH } from '../../src/store/chain.ts';
import { Slots } from '../../src/store/slots.ts';
import type { Plan } from '../../src/store/store.ts';

const store = await openStore(
  readConfig(process.env),
  new Slots(),
  pino({ level: 'warn' }, pino.destination(2)),
);
const { signal } = new AbortController();

async function drain(plan: Plan): Promise<{ rows: number; seconds: number }> {
  const started = performance.now();
  let rows = 0;
  const first = await store.items.read(plan, {}, FIRST_BATCH, signal);
  for await (const batch of chain(store.items, plan, first, Infinity, signal)) {
    rows += batch.rows;
    batch.release();
  }
  return { rows, seconds: (performance.now() - started) / 1000 };
}

process.stdout.write('listening\n');
for await (const sort of createInterface({ input: process.stdin })) {
  const result = await drain({ order: sort.startsWith('price') ? 'price' : 'id', direction: 1 });
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
await store.close();

/** The limit for a stream: the bare keyset chain over the same store. Its batches are discarded. */
import { pino } from 'pino';
import { readConfig } from '../../src/settings/config.ts';
import { ITEM_COLLECTION } from '../../src/resources/item-collection.ts';
import { openStore } from '../../src/server/open-store.ts';
import { chain, FIRST_BATCH } from '../../src/pipeline/chain.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { answerLines } from './asked.ts';

const log = pino({ level: 'warn' }, pino.destination(2));
const store = await openStore(readConfig(process.env), new Slots(), log);
const items = await store.open(ITEM_COLLECTION);
const { signal } = new AbortController();

await answerLines(async (plan) => {
  let rows = 0;
  let bytes = 0;
  const first = await items.read(plan, {}, FIRST_BATCH, signal);
  for await (const batch of chain(items, plan, first, Infinity, signal)) {
    rows += batch.rows;
    bytes += batch.length;
    batch.release();
  }
  return { rows, bytes };
});
await store.close();

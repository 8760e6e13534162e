import { connectMongo } from './src/store/mongo.ts';
import { Slots } from './src/store/slots.ts';
import { chain, FIRST_BATCH } from './src/store/chain.ts';
const uri = process.env.URI!;
const lane = process.env.WAY !== 'driver';
const slots = new Slots();
const store = await connectMongo({ uri, slots, manageIndexes: true, lane, onWarning: console.error, onNotice: console.error });
const signal = new AbortController().signal;
const marks: any[] = [];
async function pages(n: number) {
  let left = n;
  let last: any;
  const worker = async () => {
    let after: any;
    while (left-- > 0) {
      const batch = await store.items.read({ order: 'price', direction: 1 }, after ? { after } : {}, { rows: 100, bytes: 768 * 1024 }, signal);
      after = batch.last ?? undefined; if (!batch.more) after = undefined;
      batch.release();
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}
async function stream() {
  const plan = { order: 'id', direction: 1 } as const;
  let rows = 0;
  const first = await store.items.read(plan, {}, FIRST_BATCH, signal);
  for await (const batch of chain(store.items, plan, first, Infinity, signal)) { rows += batch.rows; batch.release(); }
  return rows;
}
const n = Number(process.env.N ?? 4000);
await pages(2000);
let c = process.cpuUsage(), t = performance.now();
await pages(n);
let u = process.cpuUsage(c);
console.log(process.env.WAY ?? 'lane', 'page cpu ms', ((u.user + u.system) / 1000 / n).toFixed(4), 'pages/s', Math.round((n / (performance.now() - t)) * 1000));
await stream();
c = process.cpuUsage(); t = performance.now(); let rows = 0;
for (let i = 0; i < 3; i++) rows += await stream();
u = process.cpuUsage(c);
console.log(process.env.WAY ?? 'lane', 'stream cpu s/1M', ((u.user + u.system) / rows).toFixed(3), 'rows/s', Math.round((rows / (performance.now() - t)) * 1000), slots.taken);
await store.close();

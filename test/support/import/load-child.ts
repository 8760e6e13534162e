/**
 * node --import tsx load-child.ts DIRECTORY COUNT KILL WHERE: loads generated items into an empty embedded store, every
 * fifth out of order. It kills itself in transaction number KILL: `inside`, or when it is on disk (`after`). Writes
 * `done` to stdout when there are fewer transactions.
 */
import { SyntheticItems } from '../../../src/import/synthetic.ts';
import { Writes } from '../../../src/store/sqlite/writes.ts';
import { openPlace } from '../store/place.ts';

const [directory = '', count = '', kill = '', where = ''] = process.argv.slice(2);
let transactions = 0;
const run = Reflect.get(Writes.prototype, 'run') as (this: Writes, action: () => unknown) => Promise<unknown>;
const alone = Reflect.get(Writes.prototype, 'alone') as (
  this: Writes,
  work: () => Promise<unknown>,
) => Promise<unknown>;
const end = () => process.kill(process.pid, 'SIGKILL');

Writes.prototype.run = async function <T>(this: Writes, action: () => T): Promise<T> {
  const isLast = ++transactions === Number(kill);
  const result = await run.call(this, () => {
    const done = action();
    if (isLast && where === 'inside') end();
    return done;
  });
  if (isLast) end();
  return result as T;
};
Writes.prototype.alone = async function <T>(this: Writes, work: () => Promise<T>): Promise<T> {
  const isLast = ++transactions === Number(kill);
  const result = await alone.call(this, async () => {
    const working = work();
    if (isLast && where === 'inside') setImmediate(end);
    return working;
  });
  if (isLast) end();
  return result as T;
};

const store = await openPlace(directory);
transactions = 0; // without those that undo an earlier load
const load = await store.items.load?.('fail', (at, reason) => console.error(at, reason));
if (!load) throw new Error('the store has rows');
const items = new SyntheticItems(1);
const late: Uint8Array[] = [];
for (let at = 1; at <= Number(count); at++) {
  const item = items.next();
  if (at % 5 === 0) late.push(item);
  else await load.add(item, at);
}
for (const [n, item] of late.entries()) await load.add(item, Number(count) + n);
await load.finish();
await store.close();
console.log('done');

/**
 * node --import tsx load-child.ts DIRECTORY COUNT KILL WHERE: loads generated items into an embedded store in place of those
 * that it has, every fifth out of order. It kills itself in transaction number KILL: `inside`, or when it is on disk (`after`). Writes
 * `done` to stdout when there are fewer transactions.
 */
import { SyntheticItems } from '../../../src/import/synthetic.ts';
import { Writes } from '../../../src/store/sqlite/write/writes.ts';
import { fillWith } from '../store/filling.ts';
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
const items = new SyntheticItems(1);
const late: Uint8Array[] = [];
const rows: Uint8Array[] = [];
for (let at = 1; at <= Number(count); at++) (at % 5 === 0 ? late : rows).push(items.next());
const fill = await fillWith(store.items, [...rows, ...late], { replaces: true });
if (fill.refused.length > 0) throw new Error(`refused ${fill.refused.join()}`);
await store.close();
console.log('done');

/**
 * node --import tsx load-child.ts DIRECTORY COUNT KILL WHERE: loads generated items into an embedded store in place of those
 * that it has, every fifth out of order. It kills itself in transaction number KILL: `inside`, or when it is on disk (`after`). Writes
 * `done` to stdout when there are fewer transactions.
 */
import { SyntheticItems } from '../../../src/import/synthetic.ts';
import { fillWith } from '../store/filling.ts';
import { openPlace } from '../store/place.ts';
import { killInTransaction } from '../store/sqlite/kill-in-transaction.ts';

const [directory = '', count = '', kill = '', where = ''] = process.argv.slice(2);
const countAnew = killInTransaction(Number(kill), where);

const store = await openPlace(directory);
countAnew(); // without those that undo an earlier load
const items = new SyntheticItems(1);
const late: Uint8Array[] = [];
const rows: Uint8Array[] = [];
for (let at = 1; at <= Number(count); at++) (at % 5 === 0 ? late : rows).push(items.next());
const fill = await fillWith(store.items, [...rows, ...late], { replaces: true });
if (fill.refused.length > 0) throw new Error(`refused ${fill.refused.join()}`);
await store.close();
console.log('done');

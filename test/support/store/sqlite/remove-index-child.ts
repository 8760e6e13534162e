/**
 * node --import tsx remove-index-child.ts DIRECTORY KILL WHERE: removes the index of `a` from the collection `orders` of an
 * embedded store. It kills itself in transaction number KILL: `inside`, or when it is on disk (`after`). Writes `done` to stdout when
 * there are fewer transactions.
 */
import { openDirectory } from './sqlite.ts';
import { killInTransaction } from './kill-in-transaction.ts';

const [directory = '', kill = '', where = ''] = process.argv.slice(2);
const store = await openDirectory(directory);
const orders = await store.open({ name: 'orders', collection: 'orders', indexes: [] });
killInTransaction(Number(kill), where);
await orders.removeIndex(['a']);
await store.close();
console.log('done');

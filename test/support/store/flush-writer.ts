/**
 * node flush-writer.ts DIRECTORY
 *
 * Writes to an embedded store in each way, one after another, and prints a line beginning with `acknowledged` for each when
 * the store has answered.
 */
import { writeSync } from 'node:fs';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { EXPORTS } from '../../../src/exports/jobs.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { USERS } from '../../../src/users/row.ts';
import { openDirectory } from './sqlite/sqlite.ts';

const [directory = ''] = process.argv.slice(2);
const rowOf = (_id: string, price = 1) => BSON.serialize({ _id, category: 'b', price });

const store = await openDirectory(directory);
const orders = await store.open({ name: 'orders', collection: 'orders', indexes: [['price']] });
const users = await store.records(USERS);
const exports = await store.records(EXPORTS);
const writes: Readonly<Record<string, () => Promise<unknown>>> = {
  'an insert': () => store.items.insert([rowOf('a'), rowOf('b')], 'fail'),
  'a replacement': () => store.items.insert([rowOf('a', 2)], 'replace'),
  'a user': () => users.change('ada', () => rowOf('ada')),
  'a removed user': () => users.change('ada', () => null),
  'an export': () => exports.change('e', () => rowOf('e')),
  'a removed row': async () => store.items.remove([makeBookmark({ _id: 'a' })]),
  'rows of a resource': () => orders.insert([rowOf('a')], 'fail'),
  'all rows': () => store.items.clear(new AbortController().signal),
};
for (const [name, write] of Object.entries(writes)) {
  await write();
  writeSync(1, `acknowledged ${name}\n`);
}
await store.close();

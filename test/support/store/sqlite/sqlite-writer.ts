/**
 * node sqlite-writer.ts DIRECTORY SEED BATCHES
 *
 * Writes batches of items, several at the same time, and some over earlier ones. Prints the numbers of a
 * batch's items when the store has acknowledged them. Printed items must be in the store whatever happens to
 * this process.
 */
import { writeSync } from 'node:fs';
import { Double, Int32 } from '../../../../src/store/values/bson.ts';
import { CATEGORIES, makeItem } from '../items.ts';
import { openDirectory } from './sqlite.ts';

const [directory = '', seed = '1', batches = '1'] = process.argv.slice(2);
const AT_ONCE = 3;

const store = await openDirectory(directory, { transactionRows: 50 });
let next = Number(seed) * 1_000_000;
for (let round = 0; round < Number(batches); round++) {
  const writes = Array.from({ length: AT_ONCE }, async (_, lane) => {
    const first = next;
    next += 1 + ((round * 37 + lane * 11) % 90);
    const numbers = Array.from(
      { length: next - first },
      (_unused, n) => first + n - (round % 3 === 0 ? 5 : 0),
    );
    const rows = numbers.map(
      (n) =>
        makeItem(new Int32(n), CATEGORIES[(n + round) % 3] ?? '', new Double(((n * 31 + round) % 97) / 4))
          .bytes,
    );
    await store.items.insert(rows, 'replace');
    writeSync(1, `${numbers.join(' ')}\n`);
  });
  await Promise.all(writes);
}
await store.close();

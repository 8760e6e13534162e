/**
 * node --import tsx import-child.ts DIRECTORY COUNT: imports generated items into an embedded store, and says on stdout,
 * a line each time, how many are durable. To be killed.
 */
import { generateItems } from '../../src/import/generate.ts';
import { importItems } from '../../src/import/import.ts';
import { openLmdb } from '../../src/store/lmdb.ts';
import { Slots } from '../../src/store/slots.ts';

const [directory = '', count = ''] = process.argv.slice(2);
const store = await openLmdb({ directory, slots: new Slots() });
await importItems({
  store: store.items,
  source: generateItems(Number(count), 1),
  onConflict: 'skip',
  signal: new AbortController().signal,
  progress: ({ written }) => console.log(written),
  report: (at, reason) => console.error(at, reason),
});
await store.close();

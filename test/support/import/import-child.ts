/**
 * node --import tsx import-child.ts DIRECTORY COUNT: imports generated items into an embedded store. Writes the number of
 * durable items to stdout, one line each time. A test kills it.
 */
import { generateItems } from '../../../src/import/synthetic.ts';
import { importRows } from '../../../src/import/import.ts';
import { openDirectory } from '../store/sqlite/sqlite.ts';

const [directory = '', count = ''] = process.argv.slice(2);
const store = await openDirectory(directory);
await importRows({
  open: () => Promise.resolve(store.items),
  isEndless: true, // rows of a load become durable all at once; sqlite-load-kills.test.ts kills one
  source: generateItems(Number(count), 1),
  onConflict: 'skip',
  signal: new AbortController().signal,
  progress: ({ written }) => console.log(written),
  report: (at, reason) => console.error(at, reason),
});
await store.close();

/**
 * node --import tsx replace-child.ts DIRECTORY: begins a load that replaces the items of an embedded store by ten
 * others, and writes `loading` to stdout. Ends the load when its standard input has a line.
 */
import { once } from 'node:events';
import { SyntheticItems } from '../../../src/import/synthetic.ts';
import { openPlace } from '../store/place.ts';

const store = await openPlace(process.argv[2] ?? '');
const load = await store.items.load?.('fail', (at, reason) => console.error(at, reason), true);
if (!load) throw new Error('the load did not begin');
const items = new SyntheticItems(2);
for (let at = 1; at <= 10; at++) await load.add(items.next(), at);
console.log('loading');
await once(process.stdin, 'data');
await load.finish();
await store.close();
process.stdin.destroy();

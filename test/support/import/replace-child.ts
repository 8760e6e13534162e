/**
 * node --import tsx replace-child.ts DIRECTORY: begins a load that replaces the items of an embedded store by ten
 * others, and writes `loading` to stdout. Ends the load when its standard input has a line.
 */
import { once } from 'node:events';
import { SyntheticItems } from '../../../src/import/synthetic.ts';
import { startFill } from '../store/filling.ts';
import { openPlace } from '../store/place.ts';

const store = await openPlace(process.argv[2] ?? '');
const items = new SyntheticItems(2);
const fill = startFill(store.items, { replaces: true });
await fill.asks();
fill.add(Array.from({ length: 10 }, () => items.next()));
await fill.asks();
console.log('loading');
await once(process.stdin, 'data');
fill.end();
await fill.done;
await store.close();
process.stdin.destroy();

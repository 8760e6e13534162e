/**
 * node sqlite-opener.ts DIRECTORY
 *
 * Prints a line, opens the store at the first line of its input, closes it at the second, and prints what came of it.
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { reasonOf } from '../../../../src/base/error-reason.ts';
import { openDirectory } from './sqlite.ts';

const [directory = ''] = process.argv.slice(2);
const input = createInterface({ input: process.stdin });
console.log('ready');
await once(input, 'line');
try {
  const store = await openDirectory(directory);
  console.log('open');
  await once(input, 'line');
  await store.close();
  console.log('closed');
} catch (error) {
  console.log(reasonOf(error));
}
input.close();

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../support/directory.ts';
import { startProgram } from '../../support/process/child-program.ts';

const PROCESSES = 5;
/** How often: a process that did not wait for another one met it in two of three. */
const STORES = 3;

test('processes that make a store at the same moment all open it, and close it at the same moment', async (t) => {
  for (let n = 0; n < STORES; n++) {
    const directory = await temporaryFolder(t);
    const processes = Array.from({ length: PROCESSES }, () => {
      const { child, lines } = startProgram(t, 'store/sqlite/sqlite-opener.ts', directory);
      return { child, lines: lines()[Symbol.asyncIterator]() };
    });
    const said = async () =>
      Promise.all(processes.map(async ({ lines }) => String((await lines.next()).value)));
    assert.deepEqual(await said(), Array<string>(PROCESSES).fill('ready'));
    for (const expected of ['open', 'closed']) {
      for (const { child } of processes) child.stdin.write('\n');
      assert.deepEqual(await said(), Array<string>(PROCESSES).fill(expected));
    }
  }
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { SyntheticItems } from '../../src/import/synthetic.ts';
import { linesOf } from '../support/answers.ts';
import { startProgram } from '../support/process/child-program.ts';
import { temporaryFolder } from '../support/directory.ts';
import { serverOn } from '../support/process/server.ts';

test('a server beside a load that replaces the rows serves the old ones until it ends, or is killed', async (t) => {
  const directory = await temporaryFolder(t);
  const server = await serverOn(t, { DATA_DIR: directory });
  const items = new SyntheticItems(1);
  await server.store.items.insert(
    Array.from({ length: 20 }, () => items.next()),
    'fail',
  );
  const rowsOf = async () => (await linesOf(server.get('/items/stream'))).length;
  for (const isKilled of [true, false]) {
    const { child, ended, lines } = startProgram(t, 'import/replace-child.ts', directory);
    assert.deepEqual(await once(lines(), 'line'), ['loading']);
    assert.equal(await rowsOf(), 20);
    for (const path of ['/items', '/items?sort=price_desc', '/items/partitions?n=2'])
      assert.equal((await server.get(path)).status, 200, path);
    if (isKilled) child.kill('SIGKILL');
    else child.stdin.end('finish\n');
    await ended;
    assert.equal(await rowsOf(), isKilled ? 20 : 10);
  }
});

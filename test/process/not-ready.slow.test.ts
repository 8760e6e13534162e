import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { SyntheticItems } from '../../src/import/synthetic.ts';
import { linesOf, problemOf } from '../support/answers.ts';
import { startProgram } from '../support/process/child-program.ts';
import { temporaryFolder } from '../support/directory.ts';
import { serverOn } from '../support/process/server.ts';

test('a server beside a load that replaces the rows answers 503 until the load ends, or until its process is killed', async (t) => {
  const directory = await temporaryFolder(t);
  const server = await serverOn(t, { DATA_DIR: directory });
  const items = new SyntheticItems(1);
  await server.store.items.insert(
    Array.from({ length: 20 }, () => items.next()),
    'fail',
  );
  const rowsOf = async () => (await linesOf(server.get('/items/stream'))).length;
  assert.equal(await rowsOf(), 20);
  for (const isKilled of [false, true]) {
    const { child, ended, lines } = startProgram(t, 'import/replace-child.ts', directory);
    assert.deepEqual(await once(lines(), 'line'), ['loading']);
    for (const path of ['/items', '/items/stream', '/items?sort=price_desc', '/items/partitions?n=2']) {
      const answer = await server.get(path);
      const { status, code } = await problemOf(answer);
      assert.deepEqual([status, code, answer.headers.get('retry-after')], [503, 'not-ready', '5'], path);
    }
    if (isKilled) child.kill('SIGKILL');
    else child.stdin.end('finish\n');
    await ended;
    // What a killed process left is removed because it is read.
    while (isKilled && (await server.get('/items')).status === 503);
    assert.equal(await rowsOf(), isKilled ? 0 : 10);
  }
});

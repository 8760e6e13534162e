import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { cli } from '../support/process/child-server.ts';
import { openDirectory } from '../support/store/sqlite/sqlite.ts';
import { temporaryFolder } from '../support/directory.ts';

const ROWS = 20_000;
const PLAN = { sort: '_id', direction: 1 } as const;

for (const signal of ['SIGTERM', 'SIGINT'] as const)
  test(`${signal} stops an import gracefully, and the number of rows it reports is in the store`, async (t) => {
    const directory = await temporaryFolder(t);
    const store = await openDirectory(directory);
    t.after(() => store.close());
    const count = async () => (await store.items.count(PLAN, 'exact', t.signal)).rows;
    const env = { ...process.env, DATA_DIR: directory, MONGODB_URI: '', LOG_LEVEL: 'error' };
    const child = spawn(
      process.execPath,
      [await cli(), 'import', '-', '--into', 'items', '--format', 'ndjson'],
      {
        env,
        stdio: ['pipe', 'ignore', 'pipe'],
      },
    );
    t.after(() => child.kill('SIGKILL'));
    const said = text(child.stderr);
    const ended = once(child, 'exit');
    child.stdin.on('error', () => undefined); // it goes while there may be more
    child.stdin.write(
      Array.from({ length: ROWS }, (_, n) => `{"_id":${n},"category":"a","price":${n}}\n`).join(''),
    );
    while ((await count()) === 0) await nextTurn();
    child.kill(signal);
    assert.deepEqual(await ended, [1, null]);
    const [, written] =
      /^sluice: interrupted\nthe import stopped: [\d,]+ rows read, ([\d,]+) written\n$/.exec(await said) ??
      [];
    assert.equal(written?.replace(',', ''), String(await count()), await said);
  });

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../support/directory.ts';
import { cli } from '../support/process/child-server.ts';
import { run, sluice } from '../support/process/commands.ts';

test('a command whose reader leaves, as head does, goes on, and its exit code says what came of it', async (t) => {
  const folder = await temporaryFolder(t);
  const settings = { DATA_DIR: join(folder, 'data'), MONGODB_URI: '', SAMPLE: 'off', LOG_LEVEL: 'error' };
  const file = join(folder, 'orders.ndjson');
  await writeFile(file, '{"_id":1}\n{"_id":2}\n');
  await run(['import', file], settings);
  for (const [expected, ...args] of [
    [0, 'check'],
    [1, 'check', join(folder, 'nothing.db')],
    [0, '--help'],
    [0, 'import', file, '--into', 'others'],
  ] as const) {
    const child = spawn(process.execPath, [await cli(), ...args], {
      env: { ...process.env, ...settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.destroy();
    child.stderr.destroy();
    const [code] = (await once(child, 'exit')) as [number | null];
    assert.equal(code, expected, args.join(' '));
  }
  const checked = await sluice(['check'], settings);
  assert.match(checked.stdout, /^others: 2 rows/m);
});

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { cannotListen } from '../../src/engine/cannot-listen.ts';
import { VERSION } from '../../src/base/version.ts';
import { sluice } from '../support/process/commands.ts';
import { listening } from '../support/ports.ts';
import { testEnvironment } from '../support/process/server.ts';

test('--version and -v print the version, and the help lists them', async () => {
  for (const argument of ['--version', '-v'])
    assert.deepEqual(await sluice([argument], {}), { code: 0, stdout: `${VERSION}\n`, said: '' });
  assert.match((await sluice(['--help'], {})).stdout, /--version/);
});

for (const engine of ['uws', 'node']) {
  test(`a server that cannot listen prints the reason, by ${engine}, alone and with workers`, async (t) => {
    const port = String(await listening(t, createServer()));
    const none = /: this machine does not have this address\./;
    const taken = /: the address is already in use by another process\./;
    const cases = [
      ['192.0.2.1', '3000', '1', none],
      ['127.0.0.1', port, '1', taken],
      ['192.0.2.1', '3000', '2', none],
      ['127.0.0.1', port, '2', taken],
    ] as const;
    for (const [HOST, PORT, WORKERS, message] of cases) {
      const env = await testEnvironment(t, { HOST, PORT, WORKERS, HTTP_ENGINE: engine, SAMPLE: 'auto' });
      const DATA_DIR = join(env.DATA_DIR ?? '', 'store');
      const { code, said } = await sluice(['serve'], { ...env, DATA_DIR });
      assert.equal(code, 1);
      assert.match(said, new RegExp(`^.*Cannot listen on ${HOST}:${PORT}${message.source}`, 'm'));
      assert.ok(!existsSync(DATA_DIR), 'nothing was made');
    }
  });
}

test('a port that the user has no permission for is not reported as in use', () => {
  const denied = Object.assign(new Error('bind EACCES 127.0.0.1:80'), { code: 'EACCES' });
  const error = cannotListen('127.0.0.1', 80, denied);
  assert.match(error.message, /^Cannot listen on 127\.0\.0\.1:80: permission denied/);
  assert.equal(error.cause, denied);
});

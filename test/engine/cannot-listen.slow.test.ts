import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { cannotListen } from '../../src/engine/cannot-listen.ts';
import { VERSION } from '../../src/version.ts';
import { cli } from '../support/process/child-server.ts';
import { testEnvironment } from '../support/process/server.ts';

async function sluice(argv: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const run = promisify(execFile)(process.execPath, [await cli(), ...argv], {
    env: { PATH: process.env.PATH, ...env },
    timeout: 60_000,
  });
  return run.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: unknown) => error as { code: number; stdout: string; stderr: string },
  );
}

test('--version and -v print the version, and the help lists them', async () => {
  for (const argv of [['--version'], ['-v']]) {
    const { code, stdout, stderr } = await sluice(argv);
    assert.deepEqual([code, stdout, stderr], [0, `${VERSION}\n`, '']);
  }
  assert.match((await sluice(['--help'])).stdout, /--version/);
});

for (const engine of ['uws', 'node']) {
  test(`a server that cannot listen prints the reason, by ${engine}, alone and with workers`, async (t) => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    t.after(() => taken.close());
    const { port } = taken.address() as AddressInfo;
    const cases = [
      [
        '192.0.2.1',
        '3000',
        '1',
        /Cannot listen on 192\.0\.2\.1:3000: this machine does not have this address\./,
      ],
      ['127.0.0.1', String(port), '1', /: the address is already in use by another process\./],
      ['192.0.2.1', '3000', '2', /: this machine does not have this address\./],
      ['127.0.0.1', String(port), '2', /: the address is already in use by another process\./],
    ] as const;
    for (const [HOST, PORT, WORKERS, message] of cases) {
      const env = await testEnvironment(t, { HOST, PORT, WORKERS, HTTP_ENGINE: engine, SAMPLE: 'auto' });
      const DATA_DIR = join(env.DATA_DIR ?? '', 'store');
      const { code, stderr } = await sluice(['serve'], { ...env, DATA_DIR });
      assert.equal(code, 1);
      assert.match(stderr, message);
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

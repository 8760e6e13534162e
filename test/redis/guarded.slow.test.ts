import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { temporaryFolder } from '../support/directory.ts';
import { awaited, order } from '../support/exports/exports.ts';
import { selfSigned } from '../support/load/certificate.ts';
import { freePort } from '../support/ports.ts';
import { childServer, cli } from '../support/process/child-server.ts';
import { program } from '../support/process/programs.ts';
import { redisOf } from '../support/redis/redis.ts';

/** What docs/operations.md grants to the user of Redis, as `ACL SETUSER` takes it. */
const RIGHTS = '~sluice:* +@all -@admin -@dangerous +info';
const LOGIN = ['--user', 'sluice', '--pass', 'secret'];

/** A redis-server behind TLS alone, whose one user has these rights. */
async function guardedRedis(t: TestContext) {
  if (program(t, ['redis-server'], ['--version']) === null) return null;
  const { key, certificate } = await selfSigned(await temporaryFolder(t));
  const port = await freePort();
  const tls = `--port 0 --tls-port ${port} --tls-cert-file ${certificate} --tls-key-file ${key} --tls-auth-clients no`;
  const users = `--user default off --user sluice on >secret ${RIGHTS}`;
  const args = `${tls} ${users} --bind 127.0.0.1 --maxmemory-policy noeviction --appendonly no --save`;
  const redis = redisOf(port, [...args.split(' '), ''], 'Ready to accept connections');
  t.after(() => redis.kill());
  await redis.start();
  const ask = async (...words: readonly string[]): Promise<string> => {
    const options = ['--tls', '--cacert', certificate, '-h', 'localhost', '-p', String(port), ...LOGIN];
    return (await promisify(execFile)('redis-cli', [...options, ...words])).stdout.trim();
  };
  const settings = {
    REDIS_URL: `rediss://sluice:secret@localhost:${port}`,
    NODE_EXTRA_CA_CERTS: certificate,
  };
  return { settings, ask };
}

test('limits and the queue of exports work over TLS, with a user that has nothing but the keys of sluice', async (t) => {
  const redis = await guardedRedis(t);
  if (!redis) return;
  const { settings, ask } = redis;
  const server = await childServer(t, { ...settings, SAMPLE: 'on' });
  const { id } = await order(server.url.origin, { resource: 'items', format: 'csv' });
  assert.equal((await awaited(server.url.origin, id)).file?.rows, 53_940);
  const keys = await ask('--scan');
  assert.match(keys, /^sluice:rate:/m);
  assert.match(keys, /^sluice:exports-[^:]+:/m);
  assert.match(await ask('SET', 'other', '1'), /^NOPERM/);
  assert.equal(await server.end('SIGTERM'), 0);
});

test('doctor sees a Redis behind TLS with a user of few rights, and no other authority of its certificate', async (t) => {
  const redis = await guardedRedis(t);
  if (!redis) return;
  const { REDIS_URL, NODE_EXTRA_CA_CERTS } = redis.settings;
  const doctor = async (more: Record<string, string>): Promise<string> => {
    const env = { ...process.env, REDIS_URL, DATA_DIR: await temporaryFolder(t), ...more };
    const run = promisify(execFile)(process.execPath, [await cli(), 'doctor'], { env });
    return (await run.catch((error: unknown) => error as { stdout: string })).stdout;
  };
  const seen = await doctor({ NODE_EXTRA_CA_CERTS });
  assert.match(seen, /^ok {4}servers on this Redis share limits .* INFO: 1 master answered$/m);
  assert.match(seen, /^ok {4}Redis keeps counters .* noeviction is needed$/m);
  assert.match(await doctor({}), /^FAIL {2}servers on this Redis share limits .*self-signed certificate/m);
});

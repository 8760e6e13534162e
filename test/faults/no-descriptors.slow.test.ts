import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { bearer, keysText } from '../support/access/keys-text.ts';
import { temporaryFolder } from '../support/directory.ts';
import { childServer, logged, type ChildServer, type CommandOf } from '../support/process/child-server.ts';
import type { EngineName } from '../support/process/server.ts';

const DESCRIPTORS = 100;
/** Longer than the server's timers wait: keys, resources, memory, place of the file. Milliseconds. */
const LOOKED_MS = 6_000;

const withFew: CommandOf = (...command) => [
  'bash',
  '-c',
  `ulimit -n ${DESCRIPTORS}; exec "$0" "$@"`,
  ...command,
];

/** Asks on one connection, which is kept. Resolves with the status. */
function askingOn({ url }: ChildServer, headers: Record<string, string>) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return (path: string) =>
    new Promise<number>((resolve, reject) => {
      get(new URL(path, url), { agent, headers }, (response) => {
        response.on('error', reject);
        response.resume().on('end', () => resolve(response.statusCode ?? 0));
      }).on('error', reject);
    });
}

/** Opens connections until the process has no descriptor left. Returns a function that closes them. */
async function takeAll({ url, listener }: ChildServer): Promise<() => void> {
  const taken = Array.from({ length: DESCRIPTORS + 50 }, () =>
    connect(Number(url.port), '127.0.0.1').on('error', () => undefined),
  );
  while (readdirSync(`/proc/${listener}/fd`).length < DESCRIPTORS)
    await new Promise((resolve) => setImmediate(resolve));
  return () => {
    for (const socket of taken) socket.destroy();
  };
}

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`a server on ${engine} without descriptors lives, and serves and reads its keys when it has some again`, async (t) => {
    const keysFile = join(await temporaryFolder(t), 'keys.json');
    writeFileSync(keysFile, keysText([{ name: 'first' }]));
    const settings = { MONGODB_URI: '', SAMPLE: 'auto', HTTP_ENGINE: engine, API_KEYS_FILE: keysFile };
    const server = await childServer(t, settings, withFew);
    const ask = askingOn(server, bearer('first'));
    assert.equal(await ask('/items?limit=1'), 200);
    const release = await takeAll(server);
    writeFileSync(keysFile, keysText([{ name: 'second' }])); // no change of it follows
    process.kill(server.pid, 'SIGHUP');
    const statuses = new Set<number>();
    for (const end = performance.now() + LOOKED_MS; performance.now() < end;)
      for (const path of ['/items?limit=1', '/items/stream?limit=10', '/metrics', '/readyz', '/exports'])
        statuses.add(await ask(path));
    t.diagnostic(`statuses without descriptors: ${[...statuses].join(', ')}`);
    assert.ok(statuses.has(200));
    release();
    await logged(server, 'API_KEYS_FILE was read again');
    assert.equal(await ask('/items?limit=1'), 401);
    assert.equal(await askingOn(server, bearer('second'))('/items?limit=1'), 200);
    assert.equal(await server.end('SIGTERM'), 0);
  });

test('a worker that cannot be started without descriptors is started later, and the primary stops in order', async (t) => {
  const server = await childServer(t, { MONGODB_URI: '', WORKERS: '2', HTTP_ENGINE: 'node' });
  const second = await logged(server, 'listening');
  const limit = (count: number) =>
    execFileSync('prlimit', ['--pid', String(server.pid), `--nofile=${count}:`]);
  limit(readdirSync(`/proc/${server.pid}/fd`).length - 2);
  process.kill(second.pid, 'SIGKILL');
  await logged(server, 'worker process could not be started: trying again');
  limit(1000);
  const third = await logged(server, 'listening');
  assert.notEqual(third.pid, second.pid);
  assert.equal(await server.end('SIGTERM'), 0);
});

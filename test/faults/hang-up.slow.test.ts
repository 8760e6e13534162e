import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { childServer, logged } from '../support/process/child-server.ts';
import { temporaryFolder } from '../support/directory.ts';
import { resourcesFile } from '../support/resources/resources.ts';
import { keysText } from '../support/access/keys-text.ts';

/** Sends SIGHUP to its own process as soon as that hears the first signal. */
const HANG_UP = `process.on('newListener', function once(name) {
  if (name !== 'SIGTERM') return;
  process.off('newListener', once);
  process.nextTick(() => process.kill(process.pid, 'SIGHUP'));
});`;

for (const WORKERS of ['1', '2'])
  test(`SIGHUP while a server of ${WORKERS} processes starts reads the keys again`, async (t) => {
    const API_KEYS_FILE = join(await temporaryFolder(t), 'keys.json');
    writeFileSync(API_KEYS_FILE, keysText([{ name: 'acme' }]));
    const preload = `--import=data:text/javascript,${encodeURIComponent(HANG_UP)}`;
    const server = await childServer(t, {
      MONGODB_URI: '',
      API_KEYS_FILE,
      WORKERS,
      NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} ${preload}`,
    });
    await logged(server, 'API_KEYS_FILE was read again');
    assert.equal(await server.end('SIGTERM'), 0);
  });

for (const WORKERS of ['1', '2'])
  test(`SIGHUP does not end a server of ${WORKERS} processes that has nothing to read again, and it says so`, async (t) => {
    const server = await childServer(t, { MONGODB_URI: '', WORKERS, LOG_LEVEL: 'info' });
    process.kill(server.pid, 'SIGHUP');
    await logged(server, 'SIGHUP came, and this server has no file of keys or resources to read again');
    assert.equal((await fetch(new URL('/livez', server.url))).status, 200);
    assert.equal(await server.end('SIGTERM'), 0);
  });

test('SIGHUP does not end a server that has only resources to read again', async (t) => {
  const RESOURCES_FILE = await resourcesFile(t, { resources: { items: {} } });
  const server = await childServer(t, { MONGODB_URI: '', RESOURCES_FILE });
  process.kill(server.pid, 'SIGHUP');
  assert.equal((await fetch(new URL('/items', server.url))).status, 200);
  assert.equal(await server.end('SIGTERM'), 0);
});

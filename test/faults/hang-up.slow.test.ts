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
    await logged(
      server,
      'SIGHUP came, and this server has no file of settings, keys or resources to read again',
    );
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

for (const WORKERS of ['1', '2'])
  test(`SIGHUP takes over the log's level, rates and limits of a server of ${WORKERS} processes, and names the rest`, async (t) => {
    const SETTINGS_FILE = join(await temporaryFolder(t), 'settings');
    writeFileSync(SETTINGS_FILE, 'LOG_LEVEL=info\nRATE_LIMIT=1000/min\n');
    const server = await childServer(t, { MONGODB_URI: '', WORKERS, LOG_LEVEL: '', SETTINGS_FILE });
    const asked = async () => {
      const answer = await fetch(new URL('/items?limit=1', server.url));
      await answer.text();
      return [answer.status, answer.headers.get('ratelimit-policy')] as const;
    };
    assert.match((await asked())[1] ?? '', /1000/);
    writeFileSync(SETTINGS_FILE, 'LOG_LEVEL=debug\nRATE_LIMIT=77/min\nMAX_LIMIT=7\n');
    process.kill(server.pid, 'SIGHUP');
    const taken = await logged(server, 'settings were read again, and are in force');
    assert.deepEqual(taken.settings, ['RATE_LIMIT', 'LOG_LEVEL']);
    const left = await logged(server, 'these settings have changed, which counts from the next start on');
    assert.deepEqual(left.settings, ['MAX_LIMIT']);
    if (WORKERS === '1') assert.match((await asked())[1] ?? '', /77/);
    writeFileSync(SETTINGS_FILE, 'RATE_LIMIT=fast\n');
    process.kill(server.pid, 'SIGHUP');
    await logged(server, 'the settings have faults: those of before stay in force');
    if (WORKERS === '1') assert.match((await asked())[1] ?? '', /77/);
    assert.equal(await server.end('SIGTERM'), 0);
  });

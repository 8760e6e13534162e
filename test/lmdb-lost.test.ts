/** A process whose embedded store fails for good (MDB_PANIC) exits with a clear line and is started again. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { isPanic, LmdbFailure } from '../src/store/lmdb/failures.ts';
import { childServer, cli, logged, type ChildServer } from './support/child-server.ts';
import { testDirectory } from './support/lmdb.ts';
import { usersAt } from './support/users.ts';

const LOST = 'embedded store lost: this process exits and must be restarted';
const BODY = { name: 'n', email: 'a@example.org' };

/** Settings of a process whose LMDB panics while the file `panic` exists. */
async function panicking(t: TestContext) {
  const directory = await testDirectory(t);
  const panic = join(directory, 'panic');
  const preload = pathToFileURL(join(import.meta.dirname, 'support/lmdb-panic.mjs')).href;
  const settings = {
    ...{ MONGODB_URI: '', DATA_DIR: directory, RATE_LIMIT: 'off' },
    ...{ NODE_OPTIONS: `--import ${preload}`, LMDB_PANIC: panic },
  };
  return { settings, panic };
}

/** Puts a user through any worker. Resolves with the status, or null when that worker ended meanwhile. */
async function put({ url }: ChildServer, id: string): Promise<number | null> {
  try {
    return (await usersAt(url.origin).send('PUT', `/api/users/${id}`, { body: BODY })).status;
  } catch (error) {
    assert.ok(error instanceof TypeError, String(error)); // fetch: the connection is gone
    return null;
  }
}

test('a server whose embedded store is lost logs one clear line and exits with code 3', async (t) => {
  const { settings, panic } = await panicking(t);
  const server = await childServer(t, settings);
  assert.equal(await put(server, 'before'), 201);
  await writeFile(panic, '');
  assert.equal(await put(server, 'lost'), null, 'no client is told to retry');
  const { level, err } = await logged(server, LOST);
  assert.equal(level, 60);
  assert.match(err?.message ?? '', /MDB_PANIC.*All acknowledged data is on disk/);
  assert.equal(await server.ended, 3);

  await rm(panic);
  const next = await childServer(t, settings);
  assert.equal((await usersAt(next.url.origin).get('before')).status, 200);
  assert.equal((await usersAt(next.url.origin).get('lost')).status, 404);
});

test('a worker whose embedded store is lost is replaced, and its successor serves', async (t) => {
  const { settings, panic } = await panicking(t);
  const server = await childServer(t, { ...settings, WORKERS: '2' });
  await logged(server, 'listening');
  await writeFile(panic, '');
  assert.equal(await put(server, 'lost'), null);
  const ended = await logged(server, 'worker process exited: starting another');
  assert.equal(ended.code, 3);
  await logged(server, 'listening');
  await rm(panic);
  assert.equal(await put(server, 'after'), 201);
  assert.equal((await fetch(new URL('/readyz', server.url))).status, 200);
  assert.equal(await server.end('SIGTERM'), 0);
});

test('an import whose embedded store is lost prints one clear line and exits with code 1', async (t) => {
  const { settings, panic } = await panicking(t);
  await writeFile(panic, '');
  const importing = spawn(process.execPath, [await cli(), 'import', '--generate', '50000'], {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const said = text(importing.stderr);
  assert.deepEqual(await once(importing, 'exit'), [1, null]);
  const [line = '', summary = '', ...more] = (await said).trimEnd().split('\n');
  assert.match(line, /^sluice: This process can no longer use the embedded store \(MDB_PANIC: /);
  assert.match(summary, /^the import stopped: [\d,]+ rows read, 0 written$/);
  assert.deepEqual(more, []);
});

test('a panic is recognized by its code, or by its text in a read, and other failures are not', () => {
  const met = (code: unknown, message: string) => Object.assign(new Error(message), { code });
  const panic = 'MDB_PANIC: Update of meta page failed or environment had fatal error';
  for (const error of [new LmdbFailure(-30795), met(-30795, panic), met(22, `Invalid argument: ${panic}`)])
    assert.ok(isPanic(error), error.message);
  for (const error of [new LmdbFailure(28), met(22, 'Invalid argument'), met('EIO', panic), null])
    assert.ok(!isPanic(error), String(error));
  assert.equal(new LmdbFailure(5).message, 'EIO');
});

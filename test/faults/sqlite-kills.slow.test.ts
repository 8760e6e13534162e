/** Every kind of process that uses an embedded store is killed beside the others, which go on. Nothing is lost. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { childServer, cli, type ChildServer } from '../support/process/child-server.ts';
import { sluice } from '../support/process/commands.ts';
import { temporaryFolder } from '../support/directory.ts';
import { bodyOf, checkAll, newWriters, type Known } from '../support/users/user-writers.ts';
import { PATH, usersAt } from '../support/users/users.ts';

const VICTIMS = ['server', 'import', 'index', 'worker', 'export worker', 'backup'] as const;
/** How often each kind of process is killed. */
const KILLS = process.env.LONG ? 100 : 1;
const WRITERS = 8;
const ROWS = 3_000;
/** Writes that are acknowledged before a kill, and after it by those that go on. */
const writesBefore = (kill: number) => 1 + ((kill * 37) % 40);
const WRITES_AFTER = 20;

/**
 * Users that are written, and a set that is read whole, until they are stopped. Requests that a killed server did not
 * answer are sent again. `url` resolves when the server is up.
 */
function loadOn(url: () => Promise<string>, known: readonly Known[]) {
  const writes = new EventEmitter();
  let count = 0;
  let isStopped = false;
  const write = async (writer: Known, n: number): Promise<void> => {
    while (!isStopped) {
      const version = ++writer.sent;
      const users = usersAt(await url());
      const answer = await unlessGone(users.send('PUT', `${PATH}/w${n}`, { body: bodyOf(n, version) }));
      if (!answer) continue;
      assert.ok(answer.status === 200 || answer.status === 201, `${answer.status} ${answer.text}`);
      writer.acknowledged = version;
      count++;
      writes.emit('acknowledged');
    }
  };
  const read = async (): Promise<void> => {
    while (!isStopped) {
      const orders = `${await url()}/orders/stream`;
      const body = await unlessGone(fetch(orders).then((answer) => answer.text()));
      if (body === null) continue;
      const ids = new Set(body.match(/^\{"id":\d+/gm));
      assert.deepEqual([ids.size, body.split('\n').length - 1], [ROWS, ROWS], 'each row once');
    }
  };
  const running = Promise.all([...known.map(write), read()]);
  running.catch(() => undefined); // `stop` rejects with it
  return {
    /** Resolves when so many more writes were acknowledged. */
    acknowledged: async (more: number): Promise<void> => {
      const end = count + more;
      while (count < end) await Promise.race([running, once(writes, 'acknowledged')]);
    },
    stop: async (): Promise<void> => {
      isStopped = true;
      await running;
    },
  };
}

/** Null: the server is gone. */
async function unlessGone<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof TypeError) return null; // what fetch throws
    throw error;
  }
}

/** A command in a process of its own. */
async function start(
  t: TestContext,
  settings: Record<string, string>,
  ...args: string[]
): Promise<ChildProcess> {
  const env = { ...process.env, ...settings };
  const child = spawn(process.execPath, [await cli(), ...args], { env, stdio: 'ignore' });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

/** Kills a process that may have ended. */
function killPid(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ESRCH');
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return; // it was faster
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

test(`each of ${VICTIMS.length} kinds of processes is killed ${KILLS} times beside the others: nothing acknowledged is lost`, async (t) => {
  const directory = await temporaryFolder(t);
  const backups = await temporaryFolder(t);
  const settings = { MONGODB_URI: '', DATA_DIR: directory, RATE_LIMIT: 'off', SAMPLE: 'off', WORKERS: '2' };
  const file = join(backups, 'orders.ndjson');
  const row = (n: number) => `{"_id":${n},"status":"s${n % 7}","total":${n % 11},"at":${n}}\n`;
  await writeFile(file, Array.from({ length: ROWS }, (_, n) => row(n)).join(''));
  assert.equal((await sluice(['import', file, '--into', 'orders', '--index', 'status'], settings)).code, 0);
  let server: ChildServer = await childServer(t, settings);
  const known = newWriters(WRITERS);
  let up = Promise.resolve(server.url.origin);
  const load = loadOn(() => up, known);
  const workers = new Set([server.listener]);
  const follow = async ({ log }: ChildServer): Promise<void> => {
    for await (const { msg, pid, workerPid } of log) {
      if (msg === 'listening') workers.add(pid);
      if (workerPid !== undefined) workers.delete(workerPid);
    }
  };
  void follow(server);
  const order = () =>
    fetch(new URL('/exports', server.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"resource":"orders"}',
    }).catch(() => null);

  const kills: Record<(typeof VICTIMS)[number], (n: number) => Promise<void>> = {
    server: async () => {
      const restart = async (): Promise<string> => {
        const ended = server.end('SIGKILL');
        for (const pid of workers) killPid(pid);
        workers.clear();
        await ended;
        server = await childServer(t, settings);
        workers.add(server.listener);
        void follow(server);
        return server.url.origin;
      };
      await (up = restart());
    },
    import: async (n) => {
      const importing = await start(t, settings, 'import', '--generate', '1000000', '--seed', String(n));
      await load.acknowledged(writesBefore(n));
      await kill(importing);
    },
    index: async (n) => {
      const indexing = await start(t, settings, 'index', 'orders', n % 2 === 0 ? 'total,at' : 'at,total');
      await load.acknowledged(writesBefore(n));
      await kill(indexing);
    },
    worker: () => {
      const [pid] = [...workers];
      if (pid !== undefined) killPid(pid);
      return Promise.resolve();
    },
    'export worker': async (n) => {
      for (let exports = 0; exports < 4; exports++) await order();
      await kills.worker(n);
    },
    backup: async (n) => {
      const backup = await start(t, settings, 'backup', join(backups, `${n}.db`));
      await load.acknowledged(writesBefore(n));
      await kill(backup);
    },
  };
  let killed = 0;
  for (let round = 1; round <= KILLS; round++) {
    const beside = await start(t, settings, 'import', '--generate', '1000000', '--seed', '99');
    for (const [at, victim] of VICTIMS.entries()) {
      const n = (round - 1) * VICTIMS.length + at;
      await load.acknowledged(writesBefore(n));
      await kills[victim](n);
      killed++;
      await load.acknowledged(WRITES_AFTER); // the others go on
      assert.ok(beside.signalCode === null && (beside.exitCode ?? 0) === 0, 'and so does an import');
    }
    await kill(beside);
  }
  await load.stop();
  await checkAll(usersAt(server.url.origin), known);
  const { code, stdout } = await sluice(['check'], settings);
  assert.equal(code, 0, stdout);
  for (const name of (await readdir(backups)).filter((one) => /^\d+\.db$/.test(one)))
    assert.equal((await sluice(['check', join(backups, name)], settings)).code, 0, name);
  const answer = await fetch(new URL('/orders?count=exact&limit=1', server.url));
  assert.equal(((await answer.json()) as { page: { total: number } }).page.total, ROWS);
  assert.equal(await server.end('SIGTERM'), 0);
  const versions = known.reduce((sum, { acknowledged }) => sum + acknowledged, 0);
  t.diagnostic(`${killed} processes were killed, ${versions} writes were acknowledged`);
});

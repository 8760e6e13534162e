/** Processes that share one embedded store. When one of them is killed at any step, the others continue. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { BSON } from '../../../src/store/bson.ts';
import { childProgram } from '../../support/process/child-program.ts';
import {
  childServer,
  cli,
  importItems,
  logged,
  type ChildServer,
} from '../../support/process/child-server.ts';
import { openRaw, testDirectory } from '../../support/store/sqlite/sqlite.ts';
import { bodyOf, checkAll, newWriters, type Known } from '../../support/users/user-writers.ts';
import { PATH, usersAt } from '../../support/users/users.ts';

const KILLS = Number(process.env.KILLS ?? (process.env.LONG ? 100 : 4));
/** All rows that killed imports leave are read at the end, so a new directory is used after this many kills. */
const KILLS_A_DIRECTORY = 10;
const WRITERS = 20;
const STREAMS = 1;
const IMPORTED = 10_000;
/** The largest number of an import's rows, a writer's calls or writes of users before a kill. The number varies. */
const MOST_ROWS = 12_000;
const MOST_CALLS = 120;
const MOST_WRITES = 200;
const rowsBefore = (kill: number) => 1 + ((kill * 3_701) % MOST_ROWS);
const callsBefore = (kill: number) => 1 + ((kill * 71) % MOST_CALLS);
const writesBefore = (kill: number) => 1 + ((kill * 157) % MOST_WRITES);

/** Writers and readers of a server. They run until they are stopped. */
class Load {
  readonly #url: string;
  readonly #mayBreak: boolean;
  readonly #running: Promise<void>;
  #stopped = false;
  #acknowledged = 0;
  #streamed = 0;
  #waiting: { readonly at: number; readonly resolve: () => void }[] = [];

  /** `mayBreak`: connections may end with the process that served them. Their requests are then repeated. */
  constructor(url: string, known: readonly Known[], mayBreak = false) {
    this.#url = url;
    this.#mayBreak = mayBreak;
    this.#running = Promise.all([
      ...known.map((writer, n) => this.#write(writer, n)),
      ...Array.from({ length: STREAMS }, () => this.#read()),
    ]).then(() => undefined);
    this.#running.catch(() => undefined); // a caller that waits for it gets the failure
  }

  /** Resolves after this many more acknowledged writes. Rejects when a writer or a reader failed. */
  async acknowledged(more: number): Promise<void> {
    const at = this.#acknowledged + more;
    await Promise.race([this.#running, new Promise<void>((resolve) => this.#waiting.push({ at, resolve }))]);
  }

  /** Resolves with the number of streams that ended. */
  async stop(): Promise<number> {
    this.#stopped = true;
    await this.#running;
    return this.#streamed;
  }

  async #write(writer: Known, n: number): Promise<void> {
    const users = usersAt(this.#url);
    while (!this.#stopped) {
      const version = ++writer.sent;
      const answer = await this.#unlessBroken(
        users.send('PUT', `${PATH}/w${n}`, { body: bodyOf(n, version) }),
      );
      if (answer === null) continue;
      assert.ok(answer.status === 200 || answer.status === 201, `${answer.status} ${answer.text}`);
      writer.acknowledged = version;
      this.#resolveDue(++this.#acknowledged);
    }
  }

  async #read(): Promise<void> {
    while (!this.#stopped) {
      const body = await this.#unlessBroken(this.#stream());
      if (body === null) continue;
      const ids = body.match(/^\{"_id":"[^"]+"/gm) ?? [];
      assert.equal(new Set(ids).size, ids.length, 'each row once');
      this.#streamed++;
    }
  }

  async #stream(): Promise<string> {
    const response = await fetch(`${this.#url}/items/stream`);
    assert.equal(response.status, 200);
    return response.text();
  }

  async #unlessBroken<T>(asked: Promise<T>): Promise<T | null> {
    try {
      return await asked;
    } catch (error) {
      if (this.#mayBreak && error instanceof TypeError) return null; // fetch: the connection is gone
      throw error;
    }
  }

  #resolveDue(acknowledged: number): void {
    const [due, waiting] = [
      this.#waiting.filter(({ at }) => at <= acknowledged),
      this.#waiting.filter(({ at }) => at > acknowledged),
    ];
    this.#waiting = waiting;
    for (const { resolve } of due) resolve();
  }
}

async function countOf({ url }: ChildServer): Promise<number> {
  const response = await fetch(new URL('/items?limit=1&count=exact', url));
  assert.equal(response.status, 200);
  return ((await response.json()) as { page: { total: number } }).page.total;
}

const versionsOf = (known: readonly Known[]) =>
  known.reduce((sum, { acknowledged }) => sum + acknowledged, 0);

async function assertReady({ url }: ChildServer): Promise<void> {
  const response = await fetch(new URL('/readyz', url));
  assert.equal(response.status, 200, await response.text());
}

/** Asserts that every acknowledged user and row is there, and that the indexes match the rows. */
async function assertWhole(
  server: ChildServer,
  directory: string,
  known: readonly Known[],
  acknowledged: ReadonlySet<number> = new Set(),
): Promise<void> {
  await checkAll(usersAt(server.url.origin), known);
  const file = openRaw(directory);
  const ids = new Set(file.rows().map((row) => BSON.deserialize(row)._id as unknown));
  const lost = [...acknowledged].filter((id) => !ids.has(id));
  assert.deepEqual([lost, file.faults()], [[], []]);
  file.close();
}

interface Killing {
  readonly server: ChildServer;
  readonly settings: Record<string, string>;
  readonly kill: number;
  /** The rows that were acknowledged to a killed writer. */
  readonly acknowledged: Set<number>;
}

/** Kills an import, which has large transactions, once the server sees this many of its rows. */
async function killImport(t: TestContext, { server, settings, kill }: Killing): Promise<void> {
  const before = await countOf(server);
  const importing = spawn(
    process.execPath,
    [await cli(), 'import', '--generate', '1000000', '--seed', String(kill)],
    { env: { ...process.env, ...settings }, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  t.after(() => importing.kill('SIGKILL'));
  const said = text(importing.stderr);
  const ended = once(importing, 'exit');
  while ((await countOf(server)) < before + rowsBefore(kill))
    if (importing.exitCode !== null) assert.fail(`the import ended by itself: ${await said}`);
  importing.kill('SIGKILL');
  await ended;
  assert.equal(await said, '', 'a killed import has printed nothing');
}

/** Kills a process that writes many small transactions after this many acknowledged calls. */
async function killWriter(t: TestContext, { settings, kill, acknowledged }: Killing): Promise<void> {
  const writing = spawn(
    process.execPath,
    [...childProgram('store/sqlite/sqlite-writer.ts'), settings.DATA_DIR ?? '', String(kill), '1000'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  t.after(() => writing.kill('SIGKILL'));
  const ended = once(writing, 'exit');
  let calls = 0;
  for await (const line of createInterface({ input: writing.stdout })) {
    for (const id of line.split(' ')) acknowledged.add(Number(id));
    if (++calls === callsBefore(kill)) writing.kill('SIGKILL');
  }
  assert.deepEqual(await ended, [null, 'SIGKILL']);
}

/**
 * Of four kills two hit an import and two a process with small writes. Two leave the server idle, so that the next
 * writer finds everything as the killed process left it.
 */
async function killOne(t: TestContext, killing: Killing, known: readonly Known[]): Promise<number> {
  const { kill, server } = killing;
  const load = new Load(server.url.origin, kill % 4 < 2 ? known : []);
  await (kill % 2 === 0 ? killWriter(t, killing) : killImport(t, killing));
  await assertReady(server);
  return load.stop();
}

test(`a server goes on serving streams and taking writes while ${KILLS} imports beside it are killed`, async (t) => {
  const totals = { versions: 0, streams: 0, rows: 0 };
  for (let killed = 0; killed < KILLS; killed += KILLS_A_DIRECTORY) {
    const directory = await testDirectory(t);
    const settings = { MONGODB_URI: '', DATA_DIR: directory, RATE_LIMIT: 'off' };
    const server = await childServer(t, settings);
    // Imports into an empty store fill it as a whole; sqlite-load-kills.test.ts kills those.
    await importItems(['--generate', '1', '--seed', '88888'], settings);
    const known = newWriters(WRITERS);
    const acknowledged = new Set<number>();
    const last = Math.min(killed + KILLS_A_DIRECTORY, KILLS);
    for (let kill = killed + 1; kill <= last; kill++)
      totals.streams += await killOne(t, { server, settings, kill, acknowledged }, known);
    const before = await countOf(server);
    await importItems(['--generate', String(IMPORTED), '--seed', '99999'], settings);
    assert.equal(await countOf(server), before + IMPORTED, 'the next import is whole');
    totals.versions += versionsOf(known);
    totals.rows += before;
    await assertWhole(server, directory, known, acknowledged);
    assert.equal(await server.end('SIGTERM'), 0);
  }
  t.diagnostic(
    `${totals.versions} versions acknowledged, ${totals.streams} streams, ${totals.rows} rows of those killed`,
  );
});

test(`a worker that is killed, ${KILLS} times, leaves the other one at work and is replaced`, async (t) => {
  const directory = await testDirectory(t);
  const server = await childServer(t, {
    ...{ MONGODB_URI: '', DATA_DIR: directory, RATE_LIMIT: 'off', WORKERS: '2' },
  });
  await importItems(['--generate', String(IMPORTED)], { MONGODB_URI: '', DATA_DIR: directory });
  const workers = [server.listener, (await logged(server, 'listening')).pid];
  const known = newWriters(WRITERS);
  let streamed = 0;
  for (let kill = 1; kill <= KILLS; kill++) {
    // Two writers are often on one worker. The other worker has then not written for long when it is killed.
    const load = new Load(server.url.origin, kill % 2 === 0 ? known : known.slice(0, 2), true);
    await load.acknowledged(writesBefore(kill));
    const killed = workers.shift() ?? 0;
    process.kill(killed, 'SIGKILL');
    await load.acknowledged(WRITERS);
    const ended = await logged(server, 'worker process exited: starting another');
    assert.deepEqual([ended.workerPid, ended.signal], [killed, 'SIGKILL'], 'no other worker ended');
    workers.push((await logged(server, 'listening')).pid);
    await assertReady(server);
    streamed += await load.stop();
  }
  await assertWhole(server, directory, known);
  t.diagnostic(`${versionsOf(known)} versions acknowledged, ${streamed} streams`);
  assert.equal(await server.end('SIGTERM'), 0);
});

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { test, type TestContext } from 'node:test';
import { childServer, cli } from '../support/process/child-server.ts';
import { deferred } from '../support/engine/raw.ts';
import { serverOn, testEnvironment, type EngineName } from '../support/process/server.ts';

const STOPS = process.env.LONG ? 20 : 1;
const CONNECTIONS = 200;

/** One whole answer. Null when the connection was refused, as a stopped server does. */
function ask(url: URL, agent: Agent): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const asking = request(url, { agent }, (answer) => {
      const pieces: Buffer[] = [];
      answer.on('data', (piece: Buffer) => pieces.push(piece));
      answer.on('end', () => resolve(Buffer.concat(pieces).toString()));
      answer.on('error', reject);
    });
    asking.on('error', (error) => {
      const refused = 'code' in error && error.code === 'ECONNREFUSED';
      // A new connection that fails loses no request. A reused one that breaks does.
      if (refused || ('code' in error && error.code === 'ECONNRESET' && !asking.reusedSocket)) resolve(null);
      else reject(error);
    });
    asking.end();
  });
}

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`${STOPS} stops of ${engine} under ${CONNECTIONS} busy connections lose no request and cut no answer`, async (t) => {
    for (let stop = 0; stop < STOPS; stop++) {
      const server = await childServer(t, {
        MONGODB_URI: '',
        SAMPLE: 'auto',
        HTTP_ENGINE: engine,
        RATE_LIMIT: 'off',
      });
      const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
      t.after(() => agent.destroy());
      const url = new URL('/items?limit=20', server.url);
      let answered = 0;
      const ended = deferred<number | null>();
      const busy = Array.from({ length: CONNECTIONS }, async () => {
        for (let text = await ask(url, agent); text !== null; text = await ask(url, agent)) {
          assert.equal((JSON.parse(text) as { data: unknown[] }).data.length, 20, 'whole');
          if (++answered === 5 * CONNECTIONS) void server.end('SIGTERM').then(ended.resolve);
        }
      });
      await Promise.all(busy);
      assert.ok(answered >= 5 * CONNECTIONS);
      assert.equal(await ended.promise, 0);
    }
  });

/** A command that is stopped as soon as it handles signals. */
const STOPPED_EARLY = `data:text/javascript,${encodeURIComponent(
  `process.on('newListener', function early(name) {
    if (name !== 'SIGTERM') return;
    process.off('newListener', early);
    setImmediate(() => process.kill(process.pid, 'SIGTERM'));
  });`,
)}`;

/** The exit code and signal of a command that is stopped while it loads the program. */
async function stoppedEarly(t: TestContext, args: readonly string[]): Promise<unknown[]> {
  const settings = await testEnvironment(t, { MONGODB_URI: '', NODE_OPTIONS: `--import ${STOPPED_EARLY}` });
  const child = spawn(process.execPath, [await cli(), ...args], {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  return once(child, 'exit');
}

test('a server that gets a stop signal before it listens stops in order', async (t) => {
  assert.deepEqual(await stoppedEarly(t, ['serve']), [0, null]);
});

test('an import that is stopped before it starts does not start', async (t) => {
  assert.deepEqual(await stoppedEarly(t, ['import', '--generate', '10000000']), [null, 'SIGTERM']);
});

test('a stopping server reports not ready, and serves for DRAIN_DELAY', async (t) => {
  const server = await serverOn(t, { DRAIN_DELAY: '2 s' });
  const ready = async () => {
    const response = await server.get('/readyz');
    return [response.status, await response.json()];
  };
  assert.deepEqual(await ready(), [200, { status: 'ready', reasons: [] }]);
  const closed = server.close();
  const asked = await Promise.all([ready(), server.get('/livez'), server.get('/items')]);
  assert.deepEqual(asked[0], [503, { status: 'not ready', reasons: ['the server is stopping'] }]);
  for (const { status, url } of asked.slice(1) as Response[]) assert.equal(status, 200, url);
  await closed;
  await assert.rejects(server.get('/livez'), TypeError);
});

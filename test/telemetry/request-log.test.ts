import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { pino } from 'pino';
import { forbidden } from '../../src/access/rights.ts';
import { storeUnavailable } from '../../src/base/errors.ts';
import { newNotes } from '../../src/engine/edge.ts';
import { ClientGoneError, StallError, StoppedError } from '../../src/engine/stall-timer.ts';
import { loggableError } from '../../src/telemetry/log.ts';
import { requestLog } from '../../src/telemetry/request-log.ts';
import { RawClient } from '../support/engine/raw.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { serverOn, type EngineName } from '../support/process/server.ts';

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly [name: string]: unknown;
}

const LEVELS: Readonly<Record<number, string>> = { 20: 'debug', 30: 'info', 40: 'warn', 50: 'error' };

/** A log that is kept. `next` awaits its next line about a request. */
function keptLog(level = 'info') {
  const lines: Line[] = [];
  const waiting: ((line: Line) => void)[] = [];
  const log = pino(
    { level, serializers: { err: (error: unknown) => loggableError(error) } },
    {
      write: (text: string) => {
        assert.equal(text.indexOf('\n'), text.length - 1, 'a line is one line');
        const line = JSON.parse(text) as Line;
        if (line.msg !== 'request') return;
        const next = waiting.shift();
        if (next) next(line);
        else lines.push(line);
      },
    },
  );
  const next = (): Promise<Line> =>
    new Promise((resolve) => {
      const line = lines.shift();
      if (line) resolve(line);
      else waiting.push(resolve);
    });
  return { log, lines, next };
}

async function logging(t: TestContext, engine: EngineName, environment: Record<string, string> = {}) {
  const kept = keptLog();
  const server = await serverOn(
    t,
    { HTTP_ENGINE: engine, MONGODB_URI: '', ...environment },
    { log: kept.log },
  );
  await server.insert(catalogue(300, 'string').map(({ document }) => document));
  return { ...kept, server };
}

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`${engine}: every finished request is one line with route, status, bytes, rows, client and end`, async (t) => {
    const { server, next } = await logging(t, engine);
    const asked: [method: string, path: string, expected: object][] = [
      ['GET', '/items?limit=7', { route: '/items', status: 200, rows: 7, end: 'whole' }],
      ['GET', '/items/stream', { route: '/items/stream', status: 200, rows: 300, end: 'whole' }],
      ['HEAD', '/items?limit=7', { route: '/items', status: 200, rows: 0, bytes: 0 }],
      ['GET', '/items/no-such', { route: '/items/{id}', status: 404, rows: 0 }],
      ['GET', '/items?limit=x', { route: '/items', status: 400, path: '/items' }],
      ['POST', '/items', { route: '/items', status: 405 }],
      ['GET', '/elsewhere', { route: null, status: 404, client: '127.0.0.1' }],
    ];
    for (const [method, path, expected] of asked) {
      const response = await fetch(server.url + path, {
        method,
        headers: {
          'x-request-id': 'mine',
          'accept-encoding': 'identity',
          traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        },
      });
      const bytes = (await response.arrayBuffer()).byteLength;
      const line = await next();
      const all: object = { ...line, method, bytes, requestId: 'mine', ...expected };
      assert.deepEqual(line, all);
      assert.equal(LEVELS[line.level], 'info');
      assert.ok(Number(line.ms) > 0);
      assert.match(String(line.traceparent), /^00-0af7/);
    }
  });

test('the log distinguishes a reader that leaves a stream from one that stalls', async (t) => {
  const { server, next } = await logging(t, 'uws', { STALL_TIMEOUT: '200 ms' });
  const many = catalogue(1_800, 'string').slice(300);
  await server.insert(many.map(({ document }) => ({ ...document, text: 'x'.repeat(8000) })));
  const stream = 'GET /items/stream HTTP/1.1\r\nHost: localhost\r\n\r\n';
  for (const end of ['client', 'stalled']) {
    const client = await RawClient.connect(t, Number(new URL(server.url).port));
    await client.send(stream).until((came) => came.includes('row-'));
    client.socket.pause();
    if (end === 'client') client.socket.destroy();
    const line = await next();
    assert.equal(line.end, end);
    assert.equal(LEVELS[line.level], 'info');
    assert.ok(Number(line.bytes) > 0 && Number(line.rows) < 1_800);
  }
});

test('secrets are not logged, echoed values break no line, and every line has a maximum length', async (t) => {
  const { server, next } = await logging(t, 'node');
  const client = await RawClient.connect(t, Number(new URL(server.url).port));
  const path = `/${'%0d%0a{"level":60}'.replaceAll('"', '%22')}${'p'.repeat(5000)}`;
  const head = [
    `GET ${path}?key=SECRET HTTP/1.1`,
    'Host: SECRET',
    'Authorization: Bearer SECRET',
    'Cookie: SECRET',
    `X-Request-Id: SECRET"}{"a`,
    'Traceparent: SECRET',
    'User-Agent: SECRET',
    'X-Forwarded-For: SECRET',
  ];
  await client.send(`${head.join('\r\n')}\r\n\r\n`).until((came) => came.includes('requestId'));
  const line = JSON.stringify(await next());
  assert.ok(!line.includes('SECRET'), line);
  assert.ok(line.length < 1000, `${line.length} characters`);
});

test("the level of a request's line depends on how it failed", () => {
  const { log, lines } = keptLog('debug');
  const write = requestLog(log);
  const bug = Object.assign(new Error('bug', { cause: new Error('x'.repeat(10_000)) }), { topology: 'huge' });
  const level = (route: string, failure: unknown, reason?: unknown) => {
    const cost = route === '/livez' ? 'watch' : 'page';
    const notes = { ...newNotes(), route, cost, failure };
    const request = { method: 'GET', path: route, query: '', headers: {}, address: '', notes };
    const lost = { signal: new AbortController().signal, body: () => Promise.resolve(new Uint8Array(0)) };
    const cut = reason === undefined ? null : { reason };
    write({ ...request, ...lost }, { status: 200, bytes: 0, cut }, 1);
    const line = lines.pop();
    return `${LEVELS[line?.level ?? 0] ?? ''} ${String(line?.end)}`;
  };
  assert.equal(level('/items', null), 'info whole');
  assert.equal(level('/livez', null), 'debug whole');
  assert.equal(level('/items', bug), 'error whole');
  assert.equal(level('/items', storeUnavailable(bug)), 'warn whole');
  assert.equal(level('/items', null, new ClientGoneError()), 'info client');
  assert.equal(level('/items', new ClientGoneError(), new ClientGoneError()), 'info client');
  assert.equal(level('/items', null, new StallError(1)), 'info stalled');
  assert.equal(level('/items', null, forbidden('read', 'items')), 'info key');
  assert.equal(level('/items', null, new StoppedError()), 'info stop');
  assert.equal(level('/items', null, storeUnavailable(bug)), 'warn store');
  assert.equal(level('/items', null, bug), 'error fault');

  const entry = JSON.stringify(loggableError(bug));
  assert.ok(entry.length < 6000 && entry.includes('bug') && !entry.includes('huge'));
  const expected = JSON.stringify(loggableError(storeUnavailable(bug)));
  assert.ok(expected.includes('"cause":{"type":"Error","message":"bug"') && !expected.includes('stack'));
});

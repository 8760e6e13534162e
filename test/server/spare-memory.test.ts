import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { pino } from 'pino';
import { newNotes } from '../../src/engine/edge.ts';
import { SpareMemory } from '../../src/server/spare-memory.ts';
import { serverOn } from '../support/process/server.ts';

const LOOK_MS = 1_000;
/** Far more looks than it takes. */
const LONG = 20;

/** What a server does, as the looks of a SpareMemory see it, and how often it has given memory back. */
function testServer(t: TestContext, collect = () => Promise.resolve()) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const server = { streams: 0, pages: 0, cpuMs: 0, collected: 0, lines };
  const spare = new SpareMemory({
    openStreams: () => server.streams,
    inFlight: () => server.streams + server.pages,
    cpuMs: () => server.cpuMs,
    collect: () => {
      server.collected++;
      return collect();
    },
    log,
  });
  t.after(() => spare.close());
  const asked = (cost: string) => spare.routed({ notes: { ...newNotes(), cost } });
  return { server, asked };
}

/** Lets so many looks pass. `each` is called before each of them. */
function looks(t: TestContext, count: number, each: () => void = () => undefined): void {
  for (let n = 0; n < count; n++) {
    each();
    t.mock.timers.tick(LOOK_MS);
  }
}

/** Many streams are open, and then only so many. */
function streamsEnd(t: TestContext, server: { streams: number }, { many = 1_000, left = 0 } = {}): void {
  server.streams = many;
  looks(t, 1);
  server.streams = left;
}

test('memory is given back once, at the third quiet look after many streams have ended', (t) => {
  const { server } = testServer(t);
  streamsEnd(t, server);
  looks(t, 2);
  assert.equal(server.collected, 0);
  looks(t, 1);
  assert.equal(server.collected, 1);
  looks(t, LONG);
  assert.equal(server.collected, 1, 'once');
  streamsEnd(t, server);
  looks(t, LONG);
  assert.equal(server.collected, 2, 'and again after the next ones');
});

test('a tenth of the streams may be left, and 99 streams are not many', (t) => {
  const { server } = testServer(t);
  streamsEnd(t, server, { many: 99 });
  looks(t, LONG);
  streamsEnd(t, server, { many: 1_000, left: 101 });
  looks(t, LONG);
  assert.equal(server.collected, 0);
  server.streams = 100;
  looks(t, LONG);
  assert.equal(server.collected, 1);
});

test('memory is never given back while the server has work', (t) => {
  const { server, asked } = testServer(t);
  streamsEnd(t, server);
  looks(t, LONG, () => asked('page'));
  looks(t, LONG, () => asked('stream')); // streams that end between two looks
  server.pages = 1;
  looks(t, LONG); // one page is under way throughout
  server.pages = 0;
  looks(t, LONG, () => (server.cpuMs += 100)); // an export, an import or the last streams
  server.streams = 101;
  looks(t, LONG, () => (server.streams = server.streams === 0 ? 101 : 0)); // they come and go
  assert.equal(server.collected, 0);
  server.streams = 0;
  looks(t, 2);
  asked('page');
  looks(t, 3); // a request begins the wait anew
  assert.equal(server.collected, 0);
  looks(t, 1);
  assert.equal(server.collected, 1);
});

test('probes, and little CPU, are no work', (t) => {
  const { server, asked } = testServer(t);
  streamsEnd(t, server);
  looks(t, 3, () => {
    asked('watch');
    server.cpuMs += 99;
  });
  assert.equal(server.collected, 1);
});

test('when memory cannot be given back, the log says so once', async (t) => {
  const { server } = testServer(t, () => Promise.reject(new Error('no inspector')));
  for (let time = 0; time < 2; time++) {
    streamsEnd(t, server);
    looks(t, LONG);
    await nextTurn();
  }
  assert.equal(server.collected, 1);
  assert.equal(server.lines.length, 1);
  assert.match(server.lines[0] ?? '', /"level":40.*no inspector/);
});

for (const engine of ['uws', 'node'])
  test(`a server on ${engine} collects its garbage when 100 followers have left`, async (t) => {
    const lines: string[] = [];
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
    const spareMemory = { lookMs: 1 };
    const server = await serverOn(t, { HTTP_ENGINE: engine, STREAM_LIMIT: 'off' }, { log, spareMemory });
    await server.insert([{ _id: 1, name: 'a', price: 1, category: 'c' }]);
    const leave = new AbortController();
    const { signal } = leave;
    const follow = () => fetch(`${server.url}/items/stream?follow=true&fields=id`, { signal });
    const streams = await Promise.all(Array.from({ length: 100 }, follow));
    assert.ok(streams.every(({ status }) => status === 200));
    const garbage = new WeakRef({});
    const begun = performance.now();
    while (performance.now() - begun < 10) await server.get('/livez'); // looks pass meanwhile
    const given = () => lines.filter((line) => line.includes('memory that is not used was given back'));
    assert.equal(given().length, 0);
    leave.abort();
    while (given().length === 0) await nextTurn();
    assert.equal(garbage.deref(), undefined);
  });

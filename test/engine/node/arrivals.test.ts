import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { Arrivals } from '../../../src/engine/node/arrivals.ts';
import { LoopTurns } from '../../../src/store/turns/loop-turns.ts';
import { RawClient, request } from '../../support/engine/raw.ts';

/** A server of node:http that reads at a fair pace, and what `handle` does with each request. */
async function listening(
  t: TestContext,
  handle: (path: string, response: ServerResponse, arrivals: Arrivals) => void,
): Promise<number> {
  const server = createServer((incoming, response) => {
    const arrivals = Arrivals.of(incoming.socket);
    assert.ok(arrivals);
    incoming.resume();
    handle(incoming.url ?? '', response, arrivals);
  });
  const turns = new LoopTurns();
  server.on('connection', (socket) => Arrivals.pace(socket, turns));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Requests for these paths in one text. The connection ends behind the last one. */
function inOneGo(paths: readonly string[]): string {
  const last = paths.length - 1;
  return paths.map((path, n) => request(path, n === last ? ['Connection: close'] : [])).join('');
}

function answersIn(text: string): number {
  return text.split('HTTP/1.1 200 ').length - 1;
}

test('the requests of one read come in many turns of the event loop, each once and in order', async (t) => {
  const paths: string[] = [];
  let inTurn = 0;
  let most = 0;
  const port = await listening(t, (path, response) => {
    if (inTurn === 0) setImmediate(() => (inTurn = 0));
    most = Math.max(most, ++inTurn);
    for (const end = performance.now() + 0.05; performance.now() < end;); // a machine that is slow
    paths.push(path);
    response.end();
  });
  const sent = Array.from({ length: 5000 }, (_, n) => `/${n}`);
  const client = await RawClient.connect(t, port);
  client.send(inOneGo(sent));
  assert.equal(answersIn(await client.untilClosed()), sent.length);
  assert.deepEqual(paths, sent);
  // a piece more than what 2 ms allow
  assert.ok(most <= 150, `${most} requests came in one turn`);
});

test('a connection with a hundred requests that wait is read on when they begin', async (t) => {
  const paths: string[] = [];
  const begun: (() => void)[] = [];
  const port = await listening(t, (path, response, arrivals) => {
    paths.push(path);
    arrivals.waits();
    begun.push(() => {
      arrivals.begins();
      response.end();
    });
  });
  const other = await listening(t, (_, response) => void response.end());
  const sent = Array.from({ length: 3000 }, (_, n) => `/${n}`);
  const client = await RawClient.connect(t, port);
  client.send(inOneGo(sent));
  const look = async () => (await fetch(`http://127.0.0.1:${other}/`)).text();
  while (paths.length < 100) await look();
  for (let n = 0; n < 20; n++) await look(); // time in which all would come
  assert.ok(paths.length <= 200, `${paths.length} requests came`);
  while (paths.length < sent.length) {
    begun.shift()?.();
    if (begun.length === 0) await look();
  }
  for (const begin of begun) begin();
  assert.equal(answersIn(await client.untilClosed()), sent.length);
  assert.deepEqual(paths, sent);
});

test('bodies come whole, whatever pieces they are read in, and the end behind them', async (t) => {
  const bodies: string[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      bodies.push(Buffer.concat(chunks).toString('latin1'));
      response.end();
    });
  });
  const turns = new LoopTurns();
  server.on('connection', (socket) => Arrivals.pace(socket, turns));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const sent = [1, 2047, 2048, 2049, 70_000, 300_000, 3].map((length, n) =>
    `${n}\r\n\r\n`.repeat(length).slice(0, length),
  );
  const client = await RawClient.connect(t, (server.address() as AddressInfo).port);
  const post = (body: string) => request('/', [`Content-Length: ${body.length}`], 'POST') + body;
  client.send(sent.map(post).join(''));
  await client.until((text) => answersIn(text) === sent.length);
  assert.deepEqual(bodies, sent);
  client.socket.end();
  await client.untilClosed();
});

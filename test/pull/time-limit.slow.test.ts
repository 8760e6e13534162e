import assert from 'node:assert/strict';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { provedRows } from '../../src/pull/proved-rows.ts';
import { DEFAULTS, Interruption, pull } from '../../src/pull/pull.ts';
import { INSTANT, NDJSON, proofOf, ROWS_OF_TWO, scriptedServer } from '../support/pull/pulling.ts';

/** Sends something that proves no row every few milliseconds until the client is gone. */
function drip(
  begin: (response: ServerResponse, request: IncomingMessage) => void,
  send: (response: ServerResponse) => void,
): RequestListener {
  return (request, response) => {
    begin(response, request);
    const timer = setInterval(() => send(response), 5);
    request.socket.on('close', () => clearInterval(timer));
  };
}

/** An answer with this head, and then for ever the same bytes, none of which proves a row. */
const dripOf = (status: number, headers: Record<string, string>, first: string, again: string | Buffer) =>
  drip(
    (response) => response.writeHead(status, headers).write(first),
    (response) => response.write(again),
  );

const DRIPS: Readonly<Record<string, RequestListener>> = {
  'a checkpoint that is repeated': dripOf(200, NDJSON, ROWS_OF_TWO, proofOf('checkpoint', ROWS_OF_TWO, 2)),
  'a flow of rows without a checkpoint': dripOf(200, NDJSON, '', '{"id":1}\n'),
  'a flood of gzip members': dripOf(200, { ...NDJSON, 'content-encoding': 'gzip' }, '', gzipSync('')),
  'a refusal without an end': dripOf(503, { 'content-type': 'application/problem+json' }, '', 'x'),
  'a header without an end': drip(
    (response) => response.socket?.write('HTTP/1.1 200 OK\r\nx-header: '),
    (response) => response.socket?.write('x'),
  ),
};

for (const [what, listener] of Object.entries(DRIPS)) {
  test(`${what} holds a pull no longer than its time limit`, async (t) => {
    const { url } = await scriptedServer(t, [listener]);
    const pulling = async () => {
      for await (const { rows } of pull(url, { retryForMs: 300, idleMs: 200, compression: 'gzip' }))
        assert.equal(rows, 2);
    };
    await assert.rejects(
      pulling,
      (error) =>
        error instanceof Interruption && /no row was proved for|sent nothing for/.test(error.message),
    );
  });
}

test('the time limit starts again with each proved row', async (t) => {
  let sent = '';
  let now = 0;
  const { url } = await scriptedServer(t, [
    drip(
      (response) => response.writeHead(200, NDJSON),
      (response) => {
        now += 10_000;
        const rows = sent.split('\n').length;
        sent += `{"id":${rows}}\n`;
        response.write(`{"id":${rows}}\n${proofOf(rows === 10 ? 'end' : 'checkpoint', sent, rows)}`);
      },
    ),
  ]);
  let pulled = 0;
  const clock = { ...INSTANT, now: () => now };
  for await (const { rows } of pull(url, { retryForMs: 60_000, idleMs: 60_000, clock })) pulled += rows;
  assert.equal(pulled, 10);
});

test('the time that a slow reader takes does not count against the server', async (t) => {
  const { url } = await scriptedServer(t, [
    (_, response) =>
      response
        .writeHead(200, NDJSON)
        .end(
          ROWS_OF_TWO +
            proofOf('checkpoint', ROWS_OF_TWO, 2) +
            '{"id":3}\n' +
            proofOf('end', `${ROWS_OF_TWO}{"id":3}\n`, 3),
        ),
  ]);
  let pulled = 0;
  let now = 0;
  const clock = { ...INSTANT, now: () => now };
  for await (const { rows } of pull(url, { retryForMs: 1_000, idleMs: 1_000, clock })) {
    pulled += rows;
    now += 3_600_000;
  }
  assert.equal(pulled, 3);
});

test('a server that sends places without rows for ever holds a copy no longer than its time limit', async (t) => {
  let places = 0;
  const place = () =>
    `{"checkpoint":{"cursor":"c${places++}","rows":0,"removed":0,"bytes":0,"crc32":"00000000"}}\n`;
  const { url } = await scriptedServer(t, [
    drip(
      (response) => response.writeHead(200, NDJSON),
      (response) => response.write(place()),
    ),
  ]);
  const copying = async () => {
    const options = { ...DEFAULTS, follow: true, retryForMs: 300, idleMs: 200 };
    for await (const { kind } of provedRows(new URL(url), options)) assert.equal(kind, 'proof');
  };
  await assert.rejects(copying, /no row was proved for/);
});

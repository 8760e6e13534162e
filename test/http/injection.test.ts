import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logTo } from '../support/access/log-lines.ts';
import { RawClient } from '../support/engine/raw.ts';
import { serverOn, type EngineName } from '../support/process/server.ts';

/** Texts that would start a header, a log line or a terminal command, as they can occur in a URL and in a header. */
const CODED = '%0d%0aevil:%20yes%0a%00%1b%5b2J%c2%85%e2%80%a8';
const PLAIN = 'x\x85evil: yes\xa0\x7f';

/** Every request with a value that the answer's head or body contains. */
const REQUESTS: readonly (readonly [method: string, target: string, ...headers: string[]])[] = [
  ['GET', `/items?category=${CODED}`],
  ['GET', `/items?category=x&fields=${CODED}&limit=1`],
  ['GET', `/items?sort=${CODED}`],
  ['GET', `/items?cursor=${CODED}`],
  ['GET', `/items?${CODED}=1`],
  ['GET', `/items/${CODED}`],
  ['GET', `/${CODED}`],
  ['GET', `/problems/${CODED}`],
  ['GET', `/items/stream?category=${CODED}`],
  ['GET', `/api/users/${CODED}`],
  ['PUT', `/api/users/${CODED}`, 'Content-Type: application/json', 'Content-Length: 2'],
  ['DELETE', `/api/users/${CODED}`, `If-Match: "${PLAIN}"`],
  ['PATCH', '/api/users/x', `Content-Type: ${PLAIN}`, 'Content-Length: 2'],
  ['GET', '/items', `X-Request-Id: ${PLAIN}`],
  ['GET', '/items', `Accept: ${PLAIN}`],
  ['GET', '/items', `Accept-Encoding: ${PLAIN}`],
  ['GET', '/items', `If-None-Match: "${PLAIN}"`],
  ['GET', '/items', `Origin: ${PLAIN}`],
  [
    'OPTIONS',
    '/items',
    `Origin: ${PLAIN}`,
    'Access-Control-Request-Method: GET',
    `Access-Control-Request-Headers: ${PLAIN}`,
  ],
];

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`${engine}: values that are echoed make no header and one JSON line of the log each, also when the store fails`, async (t) => {
    const lines: string[] = [];
    const settings = { HTTP_ENGINE: engine, CORS_ORIGIN: 'https://a.example' };
    const server = await serverOn(t, settings, { log: logTo(lines) });
    const port = Number(new URL(server.url).port);
    const ask = async ([method, target, ...headers]: (typeof REQUESTS)[number]) => {
      const client = await RawClient.connect(t, port);
      const head = [`${method} ${target} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...headers];
      client.send(`${head.join('\r\n')}\r\n\r\n${method.startsWith('P') ? '{}' : ''}`);
      return client.untilClosed();
    };
    const check = (answer: string, target: string) => {
      const [head = ''] = answer.split('\r\n\r\n');
      assert.match(head, /^HTTP\/1\.1 [245]\d\d /, target);
      assert.doesNotMatch(head, /evil: yes/i, target);

      assert.doesNotMatch(head.replaceAll('\r\n', ''), /[\x00-\x1f\x7f]/, target);
    };
    for (const request of REQUESTS) check(await ask(request), request[1]);
    const before = lines.length;
    await server.store.close();
    for (const request of REQUESTS) check(await ask(request), request[1]);

    assert.ok(lines.length > before, 'failures of the store are logged');
    for (const line of lines) {
      assert.equal(line.indexOf('\n'), line.length - 1, line);
      assert.equal(typeof (JSON.parse(line) as { msg: unknown }).msg, 'string');

      assert.doesNotMatch(line.slice(0, -1), /[\x00-\x1f]/);
    }
  });

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  NDJSON,
  proofOf,
  ROWS_OF_TWO,
  runPullOf,
  scriptedServer,
  streamOnly,
} from '../support/pull/pulling.ts';
import { temporaryFolder } from '../support/directory.ts';

const PROOF = proofOf('checkpoint', ROWS_OF_TWO, 2).trim();
const WRONG_CONTROLS: [what: string, line: string, message?: RegExp][] = [
  ['a row too many', PROOF.replace('"rows":2', '"rows":3'), /rows is 2, not 3/],
  ['a byte too few', PROOF.replace('"bytes":18', '"bytes":17'), /bytes is 18, not 17/],
  ['another CRC', PROOF.replace(/"crc32":"\w{8}"/, '"crc32":"00000000"'), /crc32 is/],
  ['rows as text', '{"checkpoint":{"cursor":"c","rows":"1e9","bytes":18,"crc32":"00000000"}}'],
  ['rows as a float', '{"checkpoint":{"cursor":"c","rows":1.5,"bytes":18,"crc32":"00000000"}}'],
  ['negative rows', '{"checkpoint":{"cursor":"c","rows":-2,"bytes":18,"crc32":"00000000"}}'],
  ['negative bytes', '{"checkpoint":{"cursor":"c","rows":2,"bytes":-18,"crc32":"00000000"}}'],
  ['a CRC as a number', '{"checkpoint":{"cursor":"c","rows":2,"bytes":18,"crc32":12345678}}'],
  ['a cursor as a number', '{"checkpoint":{"cursor":2,"rows":2,"bytes":18,"crc32":"00000000"}}'],
  ['rows but no cursor', PROOF.replace('"c2"', 'null')],
  ['a cursor of 16 kB', PROOF.replace('c2', 'c'.repeat(16_384))],
  ['a checkpoint that is null', '{"checkpoint":null}'],
  ['an end that is a list', '{"end":[]}'],
  ['an error without a status', '{"error":{"detail":"broken"}}'],
  ['an error that is text', '{"error":"broken"}'],
  ['a number', '17'],
  ['nothing', ''],
  ['half JSON', '{"checkpoint":{"cursor"'],
];

const NO_LINE = /^sluice: a line is neither a row nor a control line: /;

test('a wrong control line cuts the answer, and the error shows what is wrong', async (t) => {
  for (const [what, line, message = NO_LINE] of WRONG_CONTROLS) {
    const { url } = await scriptedServer(t, [
      streamOnly((_, response) => response.writeHead(200, NDJSON).end(`${ROWS_OF_TWO}${line}\n`)),
    ]);
    const { code, out, text: said } = await runPullOf([url, '-o', '-', '--retry-for', '0']);
    assert.deepEqual([code, out.length], [1, 0], what);
    assert.match(said, message, what);
    assert.ok(said.length < 300, what);
  }
});

const TWO = `${ROWS_OF_TWO}${PROOF}\n`;

test('a server that does not continue after the cursor is refused', async (t) => {
  const cases: [what: string, first: string, second: string, query: string, message: RegExp][] = [
    ['starts over', TWO, TWO, '', /started over instead of continuing after the cursor/],
    [
      'gives the same cursor',
      TWO,
      '{"id":3}\n' + proofOf('checkpoint', '{"id":3}\n', 1).replace('c1', 'c2'),
      '',
      /sent more rows, but repeated its cursor/,
    ],
    ['sends more than the limit', TWO, TWO, '?limit=1', /sent 2 rows although the limit is 1/],
  ];
  for (const into of ['-', 'file'])
    for (const [what, first, second, query, message] of cases) {
      const file = into === '-' ? into : join(await temporaryFolder(t), 'items.ndjson');
      let asked = 0;
      const { url } = await scriptedServer(t, [
        streamOnly((_, response) => response.writeHead(200, NDJSON).end(asked++ === 0 ? first : second)),
      ]);
      const { code, text: said } = await runPullOf([url + query, '-o', file]);
      assert.equal(code, 1, what);
      assert.match(said, message, what);
    }
});

test('a later run refuses a server that starts over', async (t) => {
  const file = join(await temporaryFolder(t), 'items.ndjson');
  const { url } = await scriptedServer(t, [
    streamOnly((_, response) => response.writeHead(200, NDJSON).end(TWO)),
  ]);
  const first = await runPullOf([url, '-o', file, '--retry-for', '0']);
  assert.match(first.text, /the connection was cut; run the same command again to continue/);
  const second = await runPullOf([url, '-o', file, '--retry-for', '0']);
  assert.match(second.text, /started over instead of continuing after the cursor/);
  assert.equal(await readFile(`${file}.part`, 'utf8'), ROWS_OF_TWO, 'the proved rows stay');
});

const refusal =
  (detail: string): RequestListener =>
  (_, response) =>
    response.writeHead(400, { 'content-type': 'application/problem+json' }).end(JSON.stringify({ detail }));

test('an answer that is not a stream is refused at once, and the error says what it is', async (t) => {
  const answers: [what: string, listener: RequestListener, message: RegExp][] = [
    [
      'a redirect',
      (request, response) => response.writeHead(302, { location: request.url }).end(),
      /^sluice: the server answered 302; pull follows no redirects, so give it the final URL\n$/,
    ],
    [
      'another type',
      (_, response) => response.writeHead(200, { 'content-type': `text/${'x'.repeat(5000)}` }).end('hello'),
      /^sluice: the server answered with text\/x{1,1000}…, not with application\/x-ndjson\n$/,
    ],
    [
      'no type',
      (_, response) => response.writeHead(200).end('hello'),
      /answered with no content type, not with/,
    ],
    [
      'another coding',
      (_, response) => response.writeHead(200, { ...NDJSON, 'content-encoding': 'zstd' }).end(),
      /answered with the content coding zstd, which pull cannot decode\n$/,
    ],
    [
      'a range of the stream',
      (_, response) => response.writeHead(206, NDJSON).end(TWO),
      /the server answered 206\n$/,
    ],
    [
      'a refusal whose end says what helps',
      refusal(`${'Indexes answer: status. '.repeat(20)}createIndex({"total":1})`),
      /createIndex\({"total":1}\)\n$/,
    ],
    ['a long refusal', refusal('no '.repeat(20_000)), /^sluice: the server answered 400: (no )+n?o?…\n$/],
    [
      'a long error of the server',
      (_, response) =>
        response
          .writeHead(200, NDJSON)
          .end(`${JSON.stringify({ error: { status: 400, detail: 'no '.repeat(20_000) } })}\n`),
      /^sluice: the server gave up: (no )+n?o?…\n$/,
    ],
  ];
  for (const [what, listener, message] of answers) {
    const { url, asked } = await scriptedServer(t, [streamOnly(listener)]);
    const { code, text: said } = await runPullOf([url, '-o', '-']);
    assert.equal(code, 1, what);
    assert.match(said, message, what);
    assert.ok(said.length < 1_200, what);
    assert.equal(asked.filter((path) => path.startsWith('/items/stream')).length, 1, what);
  }
});

test('an answer that is not HTTP is named in the error', async (t) => {
  const { url } = await scriptedServer(t, [(request) => request.socket.end('SSH-2.0-OpenSSH_9.2\r\n\r\n')]);
  const { code, text: said } = await runPullOf([url, '-o', '-', '--retry-for', '0']);
  assert.equal(code, 1);
  assert.match(said, /^sluice: Parse Error: Expected HTTP\//);
});

test('an answer without valid partitions is refused', async (t) => {
  const wrong: [what: string, partitions: unknown][] = [
    ['none', []],
    ['text', 'parts'],
    ['nulls', [null]],
    ['no URL', [{ url: 'http://[' }]],
    ['too many', Array.from({ length: 5 }, (_, n) => ({ url: `/items/stream?part=${n}` }))],
  ];
  for (const [what, partitions] of wrong) {
    const { url } = await scriptedServer(t, [
      (_, response) =>
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ partitions })),
    ]);
    const file = join(await temporaryFolder(t), 'items.ndjson');
    const { code, text: said } = await runPullOf([url, '-o', file, '--parallel', '4']);
    assert.equal(code, 1, what);
    assert.match(said, /the answer of \/items\/partitions does not hold 1 to 4 partitions\n$/, what);
  }
});

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { Interrupted, pull, Refused } from '../src/pull/pull.ts';
import { crc32 } from '../src/stream/crc32.ts';
import { cli } from './support/child-server.ts';
import { folder, INSTANT, runPullOf, scriptedServer } from './support/pulling.ts';

/** What each hostile server offers; a client that kept it would show. */
const OFFERED = 2 ** 31;
const MIB = 2 ** 20;
/** A file takes rows as they come; a pipe and the export hold one piece, of 128 MiB at most. */
const MOST_RSS = { file: 220 * MIB, pipe: 380 * MIB };
const NDJSON = { 'content-type': 'application/x-ndjson' };

const ROW = '{"id":1,"text":"0123456789012345678901234567890123456789"}\n';
const MANY_ROWS = Buffer.from(ROW.repeat(Math.floor(MIB / ROW.length)));
const NO_END = Buffer.alloc(MIB, 'x');
const ROWS_OF_TWO = '{"id":1}\n{"id":2}\n';

/** A child's exit code, what it said, and the most memory it ever had. */
interface Child {
  readonly code: number | null;
  readonly said: string;
  readonly rss: number;
}

/** Looks often: what the system calls the most memory of a process counts its parent's, too. */
const TELL_RSS = `data:text/javascript,${encodeURIComponent(`
  let most = 0;
  const look = () => (most = Math.max(most, process.memoryUsage.rss()));
  setInterval(look, 10).unref();
  process.on('exit', () => process.stderr.write('\\nrss ' + (look(), most)));
`)}`;

async function pullInChild(t: TestContext, args: readonly string[]): Promise<Child> {
  const child = spawn(process.execPath, ['--import', TELL_RSS, await cli(), 'pull', ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const [said, [code]] = await Promise.all([
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, said, rss: Number(/rss (\d+)$/.exec(said)?.[1] ?? NaN) };
}

/** Writes `first`, then `again` until so much was offered or nobody listens. */
function offering(
  headers: Record<string, string>,
  first: string | Buffer,
  again: Buffer,
  offered = OFFERED,
): RequestListener {
  return (_, response) => {
    response.writeHead(200, { ...NDJSON, ...headers });
    response.write(first);
    void pour(response, again, Math.ceil(offered / again.length));
  };
}

async function pour(response: ServerResponse, again: Buffer, times: number): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  for (let n = 0; n < times && !gone.signal.aborted; n++)
    if (!response.write(again)) await once(response, 'drain', { signal: gone.signal }).catch(() => undefined);
  response.end();
}

/** Answers the stream by this listener, everything else by 404. */
function streamOnly(stream: RequestListener): RequestListener {
  return (request, response) => {
    if (request.url?.startsWith('/items/stream')) stream(request, response);
    else response.writeHead(404).end();
  };
}

const gzipped = { 'content-encoding': 'gzip' };
/** Gzip members may follow each other: so each of these is 64 MiB of rows in 200 kB, for ever. */
const bombOf = (block: Buffer) => gzipSync(Buffer.concat(Array.from({ length: 64 }, () => block)));

const FLOODS: [what: string, stream: () => RequestListener, message: RegExp][] = [
  [
    'rows without a checkpoint',
    () => offering({}, '', MANY_ROWS),
    /more than 128 MiB of rows without a checkpoint/,
  ],
  ['a row without an end', () => offering({}, '{"id":"', NO_END), /a row of more than 100 MiB/],
  ['a line without an end', () => offering({}, '', NO_END), /a line of more than 64 KiB that is not a row/],
  [
    'a gzip bomb of rows',
    () => offering(gzipped, '', bombOf(MANY_ROWS), OFFERED / 100),
    /more than 128 MiB of rows without a checkpoint/,
  ],
  [
    'a gzip bomb of one row',
    () => offering(gzipped, gzipSync('{"id":"'), bombOf(NO_END), OFFERED / 100),
    /a row of more than 100 MiB/,
  ],
  [
    'a brotli bomb',
    () => {
      const bomb = brotliCompressSync(Buffer.concat([Buffer.from('{"id":"'), Buffer.alloc(256 * MIB, 'x')]), {
        params: { [constants.BROTLI_PARAM_QUALITY]: 1 },
      });
      return offering({ 'content-encoding': 'br' }, bomb, Buffer.alloc(1), 1);
    },
    /a row of more than 100 MiB/,
  ],
];

for (const [what, stream, message] of FLOODS) {
  for (const into of ['file', 'pipe'] as const) {
    test(`${what} fills no memory on the way into a ${into}`, async (t) => {
      const { url } = await scriptedServer(t, [streamOnly(stream())]);
      const output = into === 'file' ? join(await folder(t), 'items.ndjson') : '-';
      const { code, said, rss } = await pullInChild(t, [url, '-o', output, '--retry-for', '0']);
      assert.equal(code, 1, said);
      assert.match(said, message);
      assert.ok(rss < MOST_RSS[into], `${Math.round(rss / MIB)} MiB`);
      t.diagnostic(`${Math.round(rss / MIB)} MiB`);
    });
  }
}

test('a table whose columns are looked for in endless rows fills no memory', async (t) => {
  const long = Buffer.from(`{"id":1,"text":"${'x'.repeat(MIB)}"}\n`);
  const { url } = await scriptedServer(t, [
    streamOnly((_, response) => {
      response.writeHead(200, NDJSON);
      void provedRows(response, long, 1_000);
    }),
  ]);
  const { code, said, rss } = await pullInChild(t, [url, '-o', '-', '--format', 'csv', '--retry-for', '0']);
  assert.equal(code, 1, said);
  assert.match(
    said,
    /the rows that determine the columns have more than 64 MiB: name the columns with fields=/,
  );
  assert.ok(rss < MOST_RSS.pipe, `${Math.round(rss / MIB)} MiB`);
});

test('a quarter of a gigabyte of proved rows goes through a file in little memory', async (t) => {
  const { url } = await scriptedServer(t, [
    streamOnly((_, response) => {
      response.writeHead(200, NDJSON);
      void provedRows(response, MANY_ROWS, 256, 16);
    }),
  ]);
  const file = join(await folder(t), 'items.ndjson');
  const { code, said, rss } = await pullInChild(t, [url, '-o', file]);
  assert.equal(code, 0, said);
  assert.ok(rss < MOST_RSS.file, `${Math.round(rss / MIB)} MiB`);
  t.diagnostic(`${Math.round(rss / MIB)} MiB`);
});

async function provedRows(response: ServerResponse, block: Buffer, times: number, every = 1): Promise<void> {
  const rows = block.toString().split('\n').length - 1;
  let crc = 0;
  for (let n = 1; n <= times && !response.closed; n++) {
    crc = crc32(block, crc);
    const tally = { cursor: `c${n}`, rows: n * rows, bytes: n * block.length, crc32: hex(crc) };
    const control = n === times ? { end: tally } : { checkpoint: tally };
    response.write(block);
    const isFull = n % every === 0 || n === times ? !response.write(`${JSON.stringify(control)}\n`) : false;
    if (isFull) await Promise.race([once(response, 'drain'), once(response, 'close')]);
  }
  response.end();
}

test('what is asked beside the stream fills no memory either', async (t) => {
  const endless: RequestListener = (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"page":"');
    void pour(response, NO_END, OFFERED / MIB);
  };
  const { url } = await scriptedServer(t, [endless]);
  const file = join(await folder(t), 'items.ndjson');
  const parts = await pullInChild(t, [url, '-o', file, '--parallel', '4', '--retry-for', '0']);
  assert.equal(parts.code, 1);
  assert.match(parts.said, /the answer of \/items\/partitions has more than 4 MiB/);
  assert.ok(parts.rss < MOST_RSS.file, `${Math.round(parts.rss / MIB)} MiB`);
  // The estimate is only for show: without it the pull goes on.
  const estimate = await scriptedServer(t, [
    (request, response) => {
      if (!request.url?.startsWith('/items/stream')) endless(request, response);
      else response.writeHead(200, NDJSON).end(ROWS_OF_TWO + control('end', ROWS_OF_TWO, 2));
    },
  ]);
  const whole = await pullInChild(t, [estimate.url, '-o', file]);
  assert.equal(whole.code, 0, whole.said);
  assert.ok(whole.rss < MOST_RSS.file, `${Math.round(whole.rss / MIB)} MiB`);
});

/** Sends something every few milliseconds that proves no row, for as long as somebody listens. */
function dripping(
  begin: (response: ServerResponse, request: IncomingMessage) => void,
  drop: (response: ServerResponse) => void,
): RequestListener {
  return (request, response) => {
    begin(response, request);
    const timer = setInterval(() => drop(response), 5);
    request.socket.on('close', () => clearInterval(timer));
  };
}

const EMPTY_GZIP = gzipSync('');
const DRIPS: [what: string, listener: RequestListener][] = [
  [
    'a flood of empty checkpoints',
    dripping(
      (response) => response.writeHead(200, NDJSON),
      (response) => response.write(control('checkpoint', '', 0)),
    ),
  ],
  [
    'a checkpoint over and over',
    dripping(
      (response) => response.writeHead(200, NDJSON).write(ROWS_OF_TWO),
      (response) => response.write(control('checkpoint', ROWS_OF_TWO, 2)),
    ),
  ],
  [
    'a flow of rows without a proof',
    dripping(
      (response) => response.writeHead(200, NDJSON),
      (response) => response.write(ROW),
    ),
  ],
  [
    'nothing, but compressed,',
    dripping(
      (response) => response.writeHead(200, { ...NDJSON, ...gzipped }),
      (response) => response.write(EMPTY_GZIP),
    ),
  ],
  [
    'a flood of early hints',
    dripping(
      () => undefined,
      (response) => response.writeEarlyHints({ link: '</>; rel=preload' }),
    ),
  ],
  [
    'a header that never ends',
    dripping(
      (response) => response.socket?.write('HTTP/1.1 200 OK\r\nx-header: '),
      (response) => response.socket?.write('x'),
    ),
  ],
  [
    'a refusal that never ends',
    dripping(
      (response) => response.writeHead(503, { 'content-type': 'application/problem+json' }),
      (response) => response.write('x'),
    ),
  ],
];

for (const [what, listener] of DRIPS) {
  test(`${what} holds no client any longer than its own time limit`, async (t) => {
    const { url } = await scriptedServer(t, [listener]);
    const began = performance.now();
    const pulling = async () => {
      for await (const { rows } of pull(url, { retryForMs: 300, idleMs: 200, compression: 'gzip' }))
        assert.equal(rows, 2);
    };
    await assert.rejects(
      pulling,
      (error) => error instanceof Interrupted && error.message.includes('no row was proved for'),
    );
    assert.ok(performance.now() - began < 5_000);
  });
}

test('a server that proves a row now and then is given its time anew', async (t) => {
  let sent = '';
  const { url } = await scriptedServer(t, [
    (request, response) => {
      response.writeHead(200, NDJSON);
      const timer = setInterval(() => {
        const rows = sent.split('\n').length;
        sent += `{"id":${rows}}\n`;
        response.write(`{"id":${rows}}\n${control(rows === 8 ? 'end' : 'checkpoint', sent, rows)}`);
      }, 200);
      request.socket.on('close', () => clearInterval(timer));
    },
  ]);
  let pulled = 0;
  for await (const { rows } of pull(url, { retryForMs: 1_000, idleMs: 1_000 })) pulled += rows;
  assert.equal(pulled, 8);
});

test('a reader that takes its time uses up none of the server’s', async (t) => {
  const { url } = await scriptedServer(t, [
    (_, response) =>
      response
        .writeHead(200, NDJSON)
        .end(
          ROWS_OF_TWO +
            control('checkpoint', ROWS_OF_TWO, 2) +
            '{"id":3}\n' +
            control('end', `${ROWS_OF_TWO}{"id":3}\n`, 3),
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

const WRONG_CONTROLS: [what: string, line: string][] = [
  ['rows as text', '{"checkpoint":{"cursor":"c","rows":"1e9","bytes":18,"crc32":"00000000"}}'],
  ['rows as a float', '{"checkpoint":{"cursor":"c","rows":1.5,"bytes":18,"crc32":"00000000"}}'],
  ['negative rows', '{"checkpoint":{"cursor":"c","rows":-2,"bytes":18,"crc32":"00000000"}}'],
  ['negative bytes', '{"checkpoint":{"cursor":"c","rows":2,"bytes":-18,"crc32":"00000000"}}'],
  ['a CRC as a number', '{"checkpoint":{"cursor":"c","rows":2,"bytes":18,"crc32":12345678}}'],
  ['a cursor as a number', '{"checkpoint":{"cursor":2,"rows":2,"bytes":18,"crc32":"00000000"}}'],
  ['rows but no cursor', control('checkpoint', ROWS_OF_TWO, 2).replace('"c2"', 'null').trim()],
  ['a cursor of 16 kB', control('checkpoint', ROWS_OF_TWO, 2).replace('c2', 'c'.repeat(16_384)).trim()],
  ['a checkpoint that is null', '{"checkpoint":null}'],
  ['an end that is a list', '{"end":[]}'],
  ['an error without a status', '{"error":{"detail":"broken"}}'],
  ['an error that is text', '{"error":"broken"}'],
  ['a number', '17'],
  ['nothing', ''],
  ['half JSON', '{"checkpoint":{"cursor"'],
];

test('a control line that is malformed is a cut, told with the line', async (t) => {
  for (const [what, line] of WRONG_CONTROLS) {
    const { url } = await scriptedServer(t, [
      streamOnly((_, response) => response.writeHead(200, NDJSON).end(`${ROWS_OF_TWO}${line}\n`)),
    ]);
    const { code, out, text: said } = await runPullOf([url, '-o', '-', '--retry-for', '0']);
    assert.deepEqual([code, out.length], [1, 0], what);
    assert.match(said, /^sluice: a line is neither a row nor a control line: /, what);
    assert.ok(said.length < 300, what);
  }
});

test('a control line that says something else than what came is a cut, told with both', async (t) => {
  for (const [from, to, message] of [
    ['"rows":2', '"rows":3', 'rows is 2, not 3'],
    ['"bytes":18', '"bytes":17', 'bytes is 18, not 17'],
    [/"crc32":"\w{8}"/, '"crc32":"00000000"', 'crc32 is'],
  ] as const) {
    const body = ROWS_OF_TWO + control('end', ROWS_OF_TWO, 2).replace(from, to);
    const { url } = await scriptedServer(t, [
      streamOnly((_, response) => response.writeHead(200, NDJSON).end(body)),
    ]);
    const { code, text: said } = await runPullOf([url, '-o', '-', '--retry-for', '0']);
    assert.equal(code, 1);
    assert.ok(said.includes(message), said);
  }
});

const TWO = ROWS_OF_TWO + control('checkpoint', ROWS_OF_TWO, 2);

test('a server that does not go on from the cursor is refused', async (t) => {
  const cases: [what: string, first: string, second: string, query: string, message: RegExp][] = [
    ['begins again', TWO, TWO, '', /started over instead of continuing after the cursor/],
    [
      'gives the same cursor',
      TWO,
      '{"id":3}\n' + control('checkpoint', '{"id":3}\n', 1).replace('c1', 'c2'),
      '',
      /sent more rows, but repeated its cursor/,
    ],
    ['sends more than the limit', TWO, TWO, '?limit=1', /sent 2 rows although the limit is 1/],
  ];
  for (const into of ['-', 'file'])
    for (const [what, first, second, query, message] of cases) {
      const file = into === '-' ? into : join(await folder(t), 'items.ndjson');
      let asked = 0;
      const { url } = await scriptedServer(t, [
        streamOnly((_, response) => response.writeHead(200, NDJSON).end(asked++ === 0 ? first : second)),
      ]);
      const { code, text: said } = await runPullOf([url + query, '-o', file]);
      assert.equal(code, 1, what);
      assert.match(said, message, what);
    }
});

test('a later run notices, too, that the server begins again', async (t) => {
  const file = join(await folder(t), 'items.ndjson');
  const { url } = await scriptedServer(t, [
    streamOnly((_, response) => response.writeHead(200, NDJSON).end(TWO)),
  ]);
  const first = await runPullOf([url, '-o', file, '--retry-for', '0']);
  assert.match(first.text, /the connection was cut; run the same command again to continue/);
  const second = await runPullOf([url, '-o', file, '--retry-for', '0']);
  assert.match(second.text, /started over instead of continuing after the cursor/);
  assert.equal(await readFile(`${file}.part`, 'utf8'), ROWS_OF_TWO, 'what was proved is kept');
});

test('rows that no checkpoint proved are taken back from the file', async (t) => {
  const file = join(await folder(t), 'items.ndjson');
  let asked = 0;
  const { url } = await scriptedServer(t, [
    streamOnly((_, response) => {
      response.writeHead(200, NDJSON);
      if (asked++ > 0) return response.end(`{"id":3}\n${control('end', '{"id":3}\n', 1)}`);
      const unproved = `{"id":3}\n{"id":4}\n`.repeat(100_000);
      return response.write(TWO + unproved, () => response.destroy());
    }),
  ]);
  const { code, text: said } = await runPullOf([url, '-o', file]);
  assert.equal(code, 0, said);
  assert.equal(await readFile(file, 'utf8'), `${ROWS_OF_TWO}{"id":3}\n`);
});

test('answers that are no stream are refused at once, with what they are', async (t) => {
  const answers: [what: string, listener: RequestListener, message: RegExp][] = [
    [
      'a redirect',
      (request, response) => response.writeHead(302, { location: request.url }).end(),
      /^sluice: the server answered 302; pull follows no redirects, so give it the final URL\n$/,
    ],
    [
      'another type',
      (_, response) => response.writeHead(200, { 'content-type': `text/${'x'.repeat(5000)}` }).end('hello'),
      /^sluice: the server answered with text\/x{1,200}…, not with application\/x-ndjson\n$/,
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
      'a part of something',
      (_, response) => response.writeHead(206, NDJSON).end(TWO),
      /the server answered 206\n$/,
    ],
    [
      'a megabyte of refusal',
      (_, response) =>
        response
          .writeHead(400, { 'content-type': 'application/problem+json' })
          .end(JSON.stringify({ detail: 'no '.repeat(20_000) })),
      /^sluice: the server answered 400: (no )+n?o?…\n$/,
    ],
    [
      'the server’s last words, endless',
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
    assert.ok(said.length < 400, what);
    assert.equal(asked.filter((path) => path.startsWith('/items/stream')).length, 1, what);
  }
});

test('heads that are no HTTP are told as such', async (t) => {
  const heads: [what: string, head: string, message: RegExp][] = [
    [
      '64 kB of headers',
      `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(65_536)}\r\n\r\n`,
      /the answer is not valid HTTP/,
    ],
    ['something else', 'SSH-2.0-OpenSSH_9.2\r\n\r\n', /the answer is not valid HTTP/],
  ];
  for (const [what, head, message] of heads) {
    const { url } = await scriptedServer(t, [(request) => request.socket.end(head)]);
    const { code, text: said } = await runPullOf([url, '-o', '-', '--retry-for', '0']);
    assert.equal(code, 1, what);
    assert.match(said, message, what);
  }
});

test('parts that are none are refused', async (t) => {
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
    const file = join(await folder(t), 'items.ndjson');
    const { code, text: said } = await runPullOf([url, '-o', file, '--parallel', '4']);
    assert.equal(code, 1, what);
    assert.match(said, /the answer of \/items\/partitions does not hold 1 to 4 partitions\n$/, what);
  }
});

test('a row that is no row of the server makes no table', async (t) => {
  for (const row of ['{"id":', '{"id":1,"a":"}', '{"id":1,"\\x":2}', '{"id":1,"a":"\\x"}']) {
    const { url } = await scriptedServer(t, [
      streamOnly((_, response) =>
        response.writeHead(200, NDJSON).end(`${row}\n${control('end', `${row}\n`, 1)}`),
      ),
    ]);
    const { code, text: said } = await runPullOf([url, '-o', '-', '--format', 'csv']);
    assert.equal(code, 1, row);
    assert.match(said, /^sluice: a row is not in the form that the server writes: \{"id":/, row);
  }
});

test('the export of the package refuses what the command refuses', async (t) => {
  const { url } = await scriptedServer(t, [offering({}, '', NO_END)]);
  await assert.rejects(
    pull(url, { compression: 'none', clock: INSTANT }).next(),
    (error) => error instanceof Refused && error.message.includes('not a row'),
  );
});

function control(kind: 'checkpoint' | 'end', rows: string, count: number): string {
  const tally = {
    cursor: count === 0 ? null : `c${count}`,
    rows: count,
    bytes: Buffer.byteLength(rows),
    crc32: hex(crc32(Buffer.from(rows))),
  };
  return `${JSON.stringify({ [kind]: tally })}\n`;
}

function hex(crc: number): string {
  return crc.toString(16).padStart(8, '0');
}

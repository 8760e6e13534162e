import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { crc32 } from '../../src/pipeline/crc32.ts';
import { cli } from '../support/process/child-server.ts';
import {
  controlLine,
  NDJSON,
  proofOf,
  ROWS_OF_TWO,
  scriptedServer,
  streamOnly,
} from '../support/pull/pulling.ts';
import { temporaryFolder } from '../support/directory.ts';

/** The bytes that each hostile server sends. A client that kept them would exceed its memory limit. */
const SENT_BYTES = 2 ** 30;
const MIB = 2 ** 20;
/** A pull into a file writes rows as they come. A pull into a pipe holds one piece of at most 128 MiB. */
const MOST_RSS = { file: 220 * MIB, pipe: 380 * MIB };

const ROW = '{"id":1,"text":"0123456789012345678901234567890123456789"}\n';
const MANY_ROWS = Buffer.from(ROW.repeat(Math.floor(MIB / ROW.length)));
const NO_END = Buffer.alloc(MIB, 'x');

/** The exit code, stderr and peak memory of a child process. */
interface Child {
  readonly code: number | null;
  readonly said: string;
  readonly rss: number;
}

/** Reads the memory often, because the peak that the system reports includes the memory of the parent. */
const REPORT_RSS = `data:text/javascript,${encodeURIComponent(`
  let most = 0;
  const read = () => (most = Math.max(most, process.memoryUsage.rss()));
  setInterval(read, 10).unref();
  process.on('exit', () => process.stderr.write('\\nrss ' + (read(), most)));
`)}`;

async function pullInChild(t: TestContext, args: readonly string[]): Promise<Child> {
  const child = spawn(process.execPath, ['--import', REPORT_RSS, await cli(), 'pull', ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const [said, [code]] = await Promise.all([
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, said, rss: Number(/rss (\d+)$/.exec(said)?.[1] ?? NaN) };
}

const gzipped = { 'content-encoding': 'gzip' };
/** Gzip members may follow each other. Each of these has 64 MiB of rows in 200 kB. */
const bombOf = (block: Buffer) => gzipSync(Buffer.concat(Array.from({ length: 64 }, () => block)));

const FLOODS: [what: string, stream: () => RequestListener, message: RegExp][] = [
  [
    'rows without a checkpoint',
    () => flood({}, '', MANY_ROWS),
    /more than 128 MiB of rows without a checkpoint/,
  ],
  ['a row without an end', () => flood({}, '{"id":"', NO_END), /a row of more than 100 MiB/],
  ['a line without an end', () => flood({}, '', NO_END), /a line of more than 64 KiB that is not a row/],
  [
    'a gzip bomb of rows',
    () => flood(gzipped, '', bombOf(MANY_ROWS), SENT_BYTES / 100),
    /more than 128 MiB of rows without a checkpoint/,
  ],
  [
    'a brotli bomb',
    () => {
      const bomb = brotliCompressSync(Buffer.concat([Buffer.from('{"id":"'), Buffer.alloc(256 * MIB, 'x')]), {
        params: { [constants.BROTLI_PARAM_QUALITY]: 1 },
      });
      return flood({ 'content-encoding': 'br' }, bomb, Buffer.alloc(1), 1);
    },
    /a row of more than 100 MiB/,
  ],
];

for (const [what, stream, message] of FLOODS) {
  for (const into of what.includes('bomb') ? (['pipe'] as const) : (['file', 'pipe'] as const)) {
    test(`${what} fills no memory while a pull writes to a ${into}`, async (t) => {
      const { url } = await scriptedServer(t, [streamOnly(stream())]);
      const output = into === 'file' ? join(await temporaryFolder(t), 'items.ndjson') : '-';
      const { code, said, rss } = await pullInChild(t, [url, '-o', output, '--retry-for', '0']);
      assert.equal(code, 1, said);
      assert.match(said, message);
      assert.ok(rss < MOST_RSS[into], `${Math.round(rss / MIB)} MiB`);
      t.diagnostic(`${Math.round(rss / MIB)} MiB`);
    });
  }
}

test('a pull of 256 MiB of proved rows needs little memory', async (t) => {
  const { url } = await scriptedServer(t, [
    streamOnly((_, response) => {
      response.writeHead(200, NDJSON);
      void sendProvedRows(response, MANY_ROWS, 256, 16);
    }),
  ]);
  const file = join(await temporaryFolder(t), 'items.ndjson');
  const { code, said, rss } = await pullInChild(t, [url, '-o', file]);
  assert.equal(code, 0, said);
  assert.ok(rss < MOST_RSS.file, `${Math.round(rss / MIB)} MiB`);
  t.diagnostic(`${Math.round(rss / MIB)} MiB`);
});

test('an endless answer to a side request fills no memory', async (t) => {
  const endless: RequestListener = (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"page":"');
    void pour(response, NO_END, SENT_BYTES / MIB);
  };
  const { url } = await scriptedServer(t, [endless]);
  const file = join(await temporaryFolder(t), 'items.ndjson');
  const parts = await pullInChild(t, [url, '-o', file, '--parallel', '4', '--retry-for', '0']);
  assert.equal(parts.code, 1);
  assert.match(parts.said, /the answer of \/items\/partitions has more than 4 MiB/);
  assert.ok(parts.rss < MOST_RSS.file, `${Math.round(parts.rss / MIB)} MiB`);
  // The estimate is only shown. The pull continues without it.
  const estimate = await scriptedServer(t, [
    (request, response) => {
      if (!request.url?.startsWith('/items/stream')) endless(request, response);
      else response.writeHead(200, NDJSON).end(ROWS_OF_TWO + proofOf('end', ROWS_OF_TWO, 2));
    },
  ]);
  const whole = await pullInChild(t, [estimate.url, '-o', file]);
  assert.equal(whole.code, 0, whole.said);
  assert.ok(whole.rss < MOST_RSS.file, `${Math.round(whole.rss / MIB)} MiB`);
});

/** Writes `first`, then `again` until the given number of bytes is sent or the client is gone. */
function flood(
  headers: Record<string, string>,
  first: string | Buffer,
  again: Buffer,
  sent = SENT_BYTES,
): RequestListener {
  return (_, response) => {
    response.writeHead(200, { ...NDJSON, ...headers });
    response.write(first);
    void pour(response, again, Math.ceil(sent / again.length));
  };
}

async function pour(response: ServerResponse, again: Buffer, times: number): Promise<void> {
  const gone = goneSignal(response);
  for (let n = 0; n < times && !gone.aborted; n++) if (!response.write(again)) await drained(response, gone);
  response.end();
}

async function sendProvedRows(
  response: ServerResponse,
  block: Buffer,
  times: number,
  every = 1,
): Promise<void> {
  const gone = goneSignal(response);
  const rows = block.toString().split('\n').length - 1;
  let crc = 0;
  for (let n = 1; n <= times && !gone.aborted; n++) {
    crc = crc32(block, crc);
    response.write(block);
    if (n % every !== 0 && n !== times) continue;
    const tally = { cursor: `c${n}`, rows: n * rows, bytes: n * block.length, crc32: crc };
    if (!response.write(controlLine(n === times ? 'end' : 'checkpoint', tally)))
      await drained(response, gone);
  }
  response.end();
}

/** A signal that is aborted when the client is gone. */
function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  return gone.signal;
}

async function drained(response: ServerResponse, gone: AbortSignal): Promise<void> {
  await once(response, 'drain', { signal: gone }).catch(() => undefined);
}

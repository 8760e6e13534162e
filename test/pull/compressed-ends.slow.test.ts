import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { NDJSON, proofOf, ROWS_OF_TWO, runPullOf, scriptedServer } from '../support/pull/pulling.ts';

const END = proofOf('end', ROWS_OF_TWO, 2);
const CHECKPOINT = proofOf('checkpoint', ROWS_OF_TWO, 2);
const ZEROS = Buffer.alloc(512);
const NONSENSE = Buffer.from('no member of gzip');
const ROWS = gzipSync(ROWS_OF_TWO);
const WHOLE = gzipSync(ROWS_OF_TWO + END);

/** Answers, by what is behind or between the members, and whether the rows come with their proof. */
const ANSWERS: Readonly<Record<string, readonly [isProved: boolean | 'either', pieces: readonly Buffer[]]>> =
  {
    'one member': [true, [WHOLE]],
    'two members': [true, [ROWS, gzipSync(END)]],
    'zeros behind the end, as gzip itself allows': [true, [WHOLE, ZEROS]],
    // The decoder fails when it meets them before the end is read.
    'bytes behind the end': ['either', [WHOLE, NONSENSE]],
    'zeros before the member with the end, which zlib does not read': [false, [ROWS, ZEROS, gzipSync(END)]],
    'zeros before other rows': [false, [ROWS, ZEROS, WHOLE]],
    'bytes before the member with the end': [false, [ROWS, NONSENSE, gzipSync(END)]],
    'bytes behind rows that have no end': [false, [ROWS, NONSENSE]],
    'zeros behind rows that have no end': [false, [ROWS, ZEROS]],
    'a member that is cut': [false, [WHOLE.subarray(0, -12)]],
  };

for (const inOnePiece of [true, false])
  for (const [name, [isProved, pieces]] of Object.entries(ANSWERS))
    test(`${name}, ${inOnePiece ? 'in one piece' : 'in pieces'}: rows come with their proof or not at all`, async (t) => {
      const { url } = await scriptedServer(t, [
        (_, response) => response.writeHead(404).end(), // no estimate of the number of rows
        (_, response) => {
          response.writeHead(200, { ...NDJSON, 'content-encoding': 'gzip' });
          const sent = inOnePiece ? [Buffer.concat(pieces)] : pieces;
          const send = (n: number): void => {
            if (n === sent.length) response.end();
            else response.write(sent[n], () => setImmediate(send, n + 1));
          };
          send(0);
        },
        (_, response) => response.writeHead(503).end(),
      ]);
      const argv = [url, '-o', '-', '--compression', 'gzip', '--retry-for', '0'];
      const { code, out, text } = await runPullOf(argv);
      if (isProved !== 'either') assert.equal(code, isProved ? 0 : 1, text);
      assert.equal(out.toString(), code === 0 ? ROWS_OF_TWO : '');
    });

test('bytes behind a stream of Brotli change nothing of the rows that its end proves', async (t) => {
  const answer = Buffer.concat([
    brotliCompressSync(ROWS_OF_TWO + CHECKPOINT + proofOf('end', '', 0)),
    NONSENSE,
  ]);
  const { url } = await scriptedServer(t, [
    (_, response) => response.writeHead(404).end(),
    (_, response) => response.writeHead(200, { ...NDJSON, 'content-encoding': 'br' }).end(answer),
    (_, response) => response.writeHead(503).end(),
  ]);
  const { out } = await runPullOf([url, '-o', '-', '--compression', 'br', '--retry-for', '0']);
  assert.equal(out.toString(), ROWS_OF_TWO);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { pieceCodecs } from '../src/stream/pieces.ts';

const DECODE = { none: (bytes: Buffer) => bytes, gzip: gunzipSync, br: brotliDecompressSync };
/** More than a piece's text. Its second half repeats the first, which a piece must not refer to in another. */
const HALF = Array.from({ length: 30_000 }, (_, n) => `{"id":${n},"name":"é${n % 97}"}\n`).join('');
const TEXTS = ['', '{"id":1}\n', HALF, '', HALF].map((text) => Buffer.from(text));

for (const coding of ['none', 'gzip', 'br'] as const)
  test(`pieces in ${coding}, made one by one, decode in any order to their text`, async () => {
    const codec = pieceCodecs[coding];
    const { head, tail } = codec;
    const pieces = await Promise.all(TEXTS.map((text) => codec.compress(text)));
    const whole = Buffer.concat(TEXTS);
    assert.deepEqual(DECODE[coding](Buffer.concat([head, ...pieces, tail])), whole);
    const turned = Buffer.concat([head, ...pieces.toReversed(), tail]);
    assert.deepEqual(DECODE[coding](turned), Buffer.concat(TEXTS.toReversed()));
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
    if (coding !== 'none') assert.ok(bytes < whole.length / 3, `${bytes} bytes of ${whole.length}`);
  });

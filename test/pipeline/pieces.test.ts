import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { pieceCodecs } from '../../src/pipeline/pieces.ts';

const DECODE = { none: (bytes: Buffer) => bytes, gzip: gunzipSync, br: brotliDecompressSync };
const HALF = Array.from({ length: 30_000 }, (_, n) => `{"id":${n},"name":"é${n % 97}"}\n`).join('');
const TEXTS = ['', '{"id":1}\n', HALF, '', HALF].map((text) => Buffer.from(text));

for (const coding of ['none', 'gzip', 'br'] as const)
  test(`pieces in ${coding}, under way at the same time, join to a file of their text`, async () => {
    for (const texts of [TEXTS, [Buffer.alloc(0)]]) {
      const codec = pieceCodecs[coding]();
      const pieces = await Promise.all([...texts.map((text) => codec.compress(text)), codec.end()]);
      const file = Buffer.concat(pieces);
      const whole = Buffer.concat(texts);
      assert.deepEqual(DECODE[coding](file), whole);
      if (coding !== 'none' && whole.length > 0)
        assert.ok(file.length < whole.length / 3, `${file.length} bytes`);
      codec.close();
    }
  });

test('a codec that is closed rejects the pieces under way', async () => {
  const codec = pieceCodecs.br();
  const work = [codec.compress(Buffer.from(HALF)), codec.compress(Buffer.from(HALF)), codec.end()];
  codec.close();
  assert.deepEqual(
    new Set((await Promise.allSettled(work)).map(({ status }) => status)),
    new Set(['rejected']),
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BrokenSource } from '../../src/import/row.ts';
import { content, packedFiles, TEXT } from '../support/import/packed-files.ts';
import { SEED } from '../support/seed.ts';
import { below, randomFrom } from '../support/store/random-collection.ts';

for (const packed of packedFiles()) {
  const { name, bytes, ends, padding } = packed;

  test(`All parts of ${name} are read, whatever the chunks that they come in`, async (t) => {
    for (const chunk of [1, 2, 3, 7, 100, 4_099, 65_536, bytes.length])
      assert.ok((await content(t, packed, bytes, chunk)).equals(TEXT), `chunks of ${chunk} bytes`);
    if (padding) assert.ok((await content(t, packed, Buffer.concat([bytes, padding]))).equals(TEXT));
  });

  test(`A cut of ${name} is an error that names its byte, or a whole file of fewer parts`, async (t) => {
    const random = randomFrom(SEED);
    const near = [...ends, 0].flatMap((end) => Array.from({ length: 14 }, (_, n) => end + n - 7));
    const anywhere = Array.from({ length: 80 }, () => below(random, bytes.length));
    const cuts = [...near, ...anywhere].filter((cut) => cut >= 4 && cut < bytes.length);
    let whole = 0;
    for (const cut of cuts) {
      const outcome = await content(t, packed, bytes.subarray(0, cut), 1 + below(random, 3_000)).catch(
        (error: unknown) => error,
      );
      const isZero = name === 'padded.gz' && bytes.subarray(0, cut).at(-1) === 0 && !ends.includes(cut);
      if (ends.includes(cut) || (isZero && Buffer.isBuffer(outcome))) {
        assert.ok(Buffer.isBuffer(outcome) && TEXT.subarray(0, outcome.length).equals(outcome), `at ${cut}`);
        assert.ok([0, 700, TEXT.length].includes(outcome.length), `at ${cut}`);
        whole++;
      } else {
        assert.ok(outcome instanceof BrokenSource, `at ${cut}`);
        assert.match(outcome.message, new RegExp(`ends too early, at byte ${cut}$`));
      }
    }
    assert.ok(whole < cuts.length / 2 && cuts.length > 80);
  });

  test(`Bytes behind the end of ${name} are an error that names the first of them`, async (t) => {
    const random = randomFrom(SEED + 1);
    for (const before of [Buffer.alloc(0), padding ?? Buffer.alloc(0)])
      for (const behind of ['x', 'more text\n', '\x1f\x8a and more', '(\xb5/\xfe....', '\n'])
        for (const chunk of [1 + below(random, 50), bytes.length, 65_536]) {
          const all = Buffer.concat([bytes, before, Buffer.from(behind, 'latin1')]);
          const at = bytes.length + before.length;
          await assert.rejects(content(t, packed, all, chunk), (error) => {
            assert.ok(error instanceof BrokenSource);
            // Three bytes or fewer may be the beginning of a frame of zstd, one that of a member of gzip.
            const isShort = name.endsWith('.zst') && behind.length < 4;
            const place = isShort ? `ends too early, at byte ${all.length}` : `other bytes, from byte ${at}`;
            assert.ok(error.message.endsWith(place), `${JSON.stringify(behind)}: ${error.message}`);
            return true;
          });
        }
  });

  test(`A byte that is changed in ${name} never makes its content shorter without an error`, async (t) => {
    const random = randomFrom(SEED + 2);
    for (let n = 0; n < 25; n++) {
      const damaged = Buffer.from(bytes);
      const at = 4 + below(random, bytes.length - 4);
      damaged[at] = (damaged[at] ?? 0) ^ (1 << below(random, 8));
      const outcome = await content(t, packed, damaged, 1 + below(random, 9_000)).catch(
        (error: unknown) => error,
      );
      if (Buffer.isBuffer(outcome)) assert.equal(outcome.length, TEXT.length, `${name}, byte ${at}`);
      else assert.ok(outcome instanceof BrokenSource, `${name}, byte ${at}: ${String(outcome)}`);
    }
  });
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fingerprint } from '../../src/rows/fingerprint.ts';

/**
 * The buffer of xxHash's own tests, and XXH64 of its first bytes
 * (https://github.com/Cyan4973/xxHash/blob/dev/tests/sanity_test_vectors.h).
 */
function sanityBuffer(length: number): Uint8Array {
  const PRIME32 = 2654435761n;
  const PRIME64 = 11400714785074694797n;
  let generator = PRIME32;
  return Uint8Array.from({ length }, () => {
    const byte = Number(generator >> 56n);
    generator = BigInt.asUintN(64, generator * PRIME64);
    return byte;
  });
}

test('XXH64 gives the published values', () => {
  const vectors: [bytes: Uint8Array, hash: string][] = [
    [sanityBuffer(0), 'ef46db3751d8e999'],
    [sanityBuffer(1), 'e934a84adb052768'],
    [sanityBuffer(4), '9136a0dca57457ee'],
    [sanityBuffer(14), '8282dcc4994e35c8'],
    [sanityBuffer(222), 'b641ae8cb691c174'],
    [Buffer.from('abc'), '44bc2cf5ad770999'],
    [Buffer.from('Nobody inspects the spammish repetition'), 'fbcea83c8a378bf1'],
    // Larger than the buffer. Of an independent implementation: python-xxhash 4.1 with xxHash 0.8.4's code.
    [new Uint8Array(150_000).fill(1), 'b7be4816624059fb'],
  ];
  for (const [bytes, hash] of vectors) assert.equal(fingerprint(bytes), hash, `${bytes.length} bytes`);
});

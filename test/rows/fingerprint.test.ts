import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createXxh64, fingerprint } from '../../src/rows/fingerprint.ts';

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
  const xxh64 = createXxh64();
  const prime = 2654435761n;
  const vectors: [length: number, seed: bigint, hash: bigint][] = [
    [0, 0n, 0xef46db3751d8e999n],
    [0, prime, 0xac75fda2929b17efn],
    [1, 0n, 0xe934a84adb052768n],
    [1, prime, 0x5014607643a9b4c3n],
    [4, 0n, 0x9136a0dca57457een],
    [14, 0n, 0x8282dcc4994e35c8n],
    [14, prime, 0xc3bd6bf63deb6df0n],
    [222, 0n, 0xb641ae8cb691c174n],
    [222, prime, 0x20cb8ab7ae10c14an],
  ];
  for (const [length, seed, hash] of vectors) {
    assert.equal(xxh64(sanityBuffer(length), seed), hash, `${length} bytes, seed ${seed}`);
  }
  assert.equal(xxh64(Buffer.from('abc'), 0n), 0x44bc2cf5ad770999n);
  assert.equal(xxh64(Buffer.from('Nobody inspects the spammish repetition'), 0n), 0xfbcea83c8a378bf1n);
});

test('an input larger than the buffer is hashed as a whole', () => {
  // The expected values are from an independent implementation: python-xxhash 4.1 with xxHash 0.8.4's code.
  const xxh64 = createXxh64();
  assert.equal(xxh64(new Uint8Array(150_000).fill(1), 0n), 0xb7be4816624059fbn);
  assert.equal(
    xxh64(
      new Uint8Array(150_000).map((_, i) => i * 7),
      5n,
    ),
    0x3b2540cb0fa099a7n,
  );
  assert.equal(fingerprint(sanityBuffer(222)), 'b641ae8cb691c174');
});

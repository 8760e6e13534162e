import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { createXxh64, fingerprint } from '../../src/rows/fingerprint.ts';
import { PROBLEM } from '../../src/errors.ts';
import { PAGE } from '../../src/resources/page/page.ts';
import { serializerOf } from '../../src/rows/serializers.ts';
import { temporaryFolder } from '../support/directory.ts';

const run = promisify(execFile);

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

test('a fingerprint is 16 hexadecimal digits that change with every bit, whatever the length', () => {
  const large = Buffer.alloc(200_000, 'any bytes');
  for (const length of [0, 1, 31, 32, 33, 65_535, 65_536, 65_537, 131_072, 200_000]) {
    const bytes = Buffer.from(large.subarray(0, length));
    const before = fingerprint(bytes);
    assert.match(before, /^[0-9a-f]{16}$/);
    assert.equal(fingerprint(bytes.subarray()), before);
    const places = length === 0 ? [] : [...new Set([0, length >> 1, length - 1])];
    const others = places.map((at) => {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(at) ^ 4, at);
      return fingerprint(changed);
    });
    assert.equal(new Set([before, ...others]).size, 1 + places.length);
  }
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
});

test('the precompiled serializers write the members of their schemas, in order', () => {
  const problem = {
    requestId: 'r',
    code: 'c',
    type: '/t',
    title: 'T',
    status: 400,
    detail: 'd"',
    instance: '/i',
  };
  const text =
    '{"type":"/t","title":"T","status":400,"detail":"d\\"","instance":"/i","code":"c","requestId":"r"';
  const [writeProblem, writePage] = [serializerOf(PROBLEM), serializerOf(PAGE)];
  assert.equal(writeProblem(problem), `${text}}`);
  assert.equal(writeProblem({ ...problem, parameter: 'limit' }), `${text},"parameter":"limit"}`);
  const page = { nextCursor: null, hasMore: false, limit: 5 };
  assert.equal(writePage(page), '{"limit":5,"hasMore":false,"nextCursor":null}');
  assert.equal(
    writePage({ ...page, nextCursor: 'abc', page: 2 }),
    '{"limit":5,"hasMore":false,"nextCursor":"abc","page":2}',
  );
});

test('without WebAssembly (node --jitless) the start says so in one sentence and ends with exit code 1', async (t) => {
  const cli = join(import.meta.dirname, '../../src/process/cli.ts');
  const directory = await temporaryFolder(t);
  const settings = { DATA_DIR: directory, PORT: '0', WORKERS: '1' };
  const flags = ['--jitless', '--no-warnings', '--import', 'tsx', cli, 'serve'];
  const failed = await run(process.execPath, flags, { env: { ...process.env, ...settings } }).then(
    () => null,
    (error: unknown) => error as { code: number; stderr: string },
  );
  assert.equal(failed?.code, 1);
  assert.match(
    failed.stderr,
    /^sluice: WebAssembly is required, but this Node.js cannot run it: start it without --jitless\.\n$/m,
  );
});

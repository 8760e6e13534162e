import { createHash } from 'node:crypto';
import { instantiate } from './wasm.ts';
import type { TranscodeExports } from './wasm.ts';

const PAGE = 65_536;
/** Where the input is copied to: one page after the module's own pages. */
const BUFFER_AT = 4 * PAGE;
const BLOCK = 32;

/**
 * A 64-bit content hash as 16 hexadecimal digits, for ETags: XXH64 with seed 0, or the beginning of a SHA-256 where
 * wasm cannot run. Equal bytes have equal fingerprints within one server's lifetime. It does not protect against
 * forgery.
 */
export function fingerprint(bytes: Uint8Array): string {
  hasher ??= createHasher();
  return hasher(bytes);
}

let hasher: ((bytes: Uint8Array) => string) | undefined;

function createHasher(): (bytes: Uint8Array) => string {
  try {
    const hash = createXxh64();
    return (bytes) => hash(bytes, 0n).toString(16).padStart(16, '0');
  } catch {
    // The log already says why wasm is missing: createTranscoder reports it at start.
    return (bytes) => createHash('sha256').update(bytes).digest('hex').slice(0, 16);
  }
}

/**
 * XXH64 by the wasm module in a small memory of its own. The input goes through it piece by piece. Throws when the
 * module cannot be loaded.
 */
export function createXxh64(): (bytes: Uint8Array, seed: bigint) => bigint {
  const memory = new WebAssembly.Memory({ initial: BUFFER_AT / PAGE + 1, maximum: BUFFER_AT / PAGE + 1 });
  const wasm: TranscodeExports = instantiate(memory, {
    number: notHere,
    decimal: notHere,
    extended: notHere,
    spilled: notHere,
  });
  const buffer = new Uint8Array(memory.buffer, BUFFER_AT, PAGE);
  return (bytes, seed) => {
    wasm.hashBegin(seed);
    let at = 0;
    for (const blocksEnd = bytes.length - (bytes.length % BLOCK); at < blocksEnd;) {
      const piece = bytes.subarray(at, Math.min(at + PAGE, blocksEnd));
      buffer.set(piece);
      wasm.hashBlocks(BUFFER_AT, piece.length);
      at += piece.length;
    }
    buffer.set(bytes.subarray(at));
    return BigInt.asUintN(64, wasm.hashEnd(BUFFER_AT, bytes.length - at));
  };
}

function notHere(): never {
  throw new TypeError('the hashing instance writes no rows');
}

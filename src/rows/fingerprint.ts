import { instantiate, type TranscodeExports } from './wasm.ts';

const PAGE = 65_536;
/** Where the input is copied to: one page after the module's own pages. */
const BUFFER_AT = 4 * PAGE;
const BLOCK = 32;

let hash: ReturnType<typeof createXxh64> | undefined;

/**
 * A 64-bit content hash as 16 hexadecimal digits, for ETags: XXH64 with seed 0. Equal bytes have equal fingerprints. It
 * does not protect against forgery.
 */
export function fingerprint(bytes: Uint8Array): string {
  hash ??= createXxh64();
  return hash(bytes, 0n).toString(16).padStart(16, '0');
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
    double: notHere,
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

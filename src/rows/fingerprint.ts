import { instantiate, type TranscodeExports } from './wasm.ts';

const PAGE = 65_536;
/** Where the input is copied to: one page after the module's own pages. */
const BUFFER_AT = 4 * PAGE;
const BLOCK = 32;

/** The wasm module in a small memory of its own, made for the first fingerprint. */
let hasher: { readonly wasm: TranscodeExports; readonly buffer: Uint8Array } | undefined;

/**
 * A 64-bit content hash as 16 hexadecimal digits, for ETags: XXH64 with seed 0. It does not protect against forgery.
 * Throws when the module cannot be loaded.
 */
export function fingerprint(bytes: Uint8Array): string {
  const { wasm, buffer } = (hasher ??= openHasher());
  wasm.hashBegin(0n);
  let at = 0;
  for (const blocksEnd = bytes.length - (bytes.length % BLOCK); at < blocksEnd;) {
    const piece = bytes.subarray(at, Math.min(at + PAGE, blocksEnd));
    buffer.set(piece);
    wasm.hashBlocks(BUFFER_AT, piece.length);
    at += piece.length;
  }
  buffer.set(bytes.subarray(at));
  const hash = BigInt.asUintN(64, wasm.hashEnd(BUFFER_AT, bytes.length - at));
  return hash.toString(16).padStart(16, '0');
}

function openHasher() {
  const pages = BUFFER_AT / PAGE + 1;
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
  const host = { number: notHere, decimal: notHere, double: notHere, extended: notHere, spilled: notHere };
  return { wasm: instantiate(memory, host), buffer: new Uint8Array(memory.buffer, BUFFER_AT, PAGE) };
}

function notHere(): never {
  throw new TypeError('the hashing instance writes no rows');
}

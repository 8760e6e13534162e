import { readFileSync } from 'node:fs';
import type { Slots } from '../slots.ts';
import type { Size } from '../store.ts';

/** What precedes a document: 0x03, the checksum, NUL. Bytes. See rows.as.ts. */
export const HEAD_BYTES = 6;

interface Functions {
  readonly sum: (at: number, length: number) => number;
  readonly walk: (at: number, end: number, mostRows: number, mostBytes: number, direction: number) => number;
  readonly rows: { readonly value: number };
  readonly last: { readonly value: number };
}

/** Rows of a batch that were checked. */
export interface Walked {
  readonly rows: number;
  /** Where they end, and where the document of the last one begins, from the start of the walk. */
  readonly length: number;
  readonly lastAt: number;
}

/** A row does not have the bytes that were written. */
export class DamagedRowError extends Error {
  override readonly name = 'DamagedRowError';
}

let compiled: WebAssembly.Module | null = null;

function instantiate(memory: object): Functions {
  compiled ??= new WebAssembly.Module(readFileSync(new URL('./rows.wasm', import.meta.url)));
  return new WebAssembly.Instance(compiled, { env: { memory } }).exports as unknown as Functions;
}

/**
 * Passes the rows from an address in the memory of slots on, until there are so many rows or bytes. Throws DamagedRowError
 * for a row that does not have its checksum, or does not lie behind the one before. `direction`: of the ids; 0: the rows
 * have another order.
 */
export type RowWalk = (address: number, length: number, size: Size, direction: 1 | -1 | 0) => Walked;

export function rowWalkIn({ memory }: Slots): RowWalk {
  const { walk, rows, last } = instantiate(memory);
  return (address, length, { rows: most, bytes }, direction) => {
    const end = walk(address, address + length, most, Math.min(bytes, length), direction) >>> 0;
    if (end === 0)
      throw new DamagedRowError(
        `row ${rows.value} of a batch does not have the bytes that were written, or not its place`,
      );
    return { rows: rows.value, length: end - address, lastAt: last.value - address + HEAD_BYTES };
  };
}

/** The wasm module's static data would lie below. */
const SCRATCH_AT = 65_536;
const PAGE = 65_536;

/** Adds and checks the checksums of single rows, in a memory of its own. */
class SingleRows {
  readonly #memory = new WebAssembly.Memory({ initial: 4, maximum: 1_024 });
  readonly #functions = instantiate(this.#memory);

  sum(document: Uint8Array): number {
    const missing = SCRATCH_AT + document.length - this.#memory.buffer.byteLength;
    if (missing > 0) this.#memory.grow(Math.ceil(missing / PAGE));
    new Uint8Array(this.#memory.buffer, SCRATCH_AT, document.length).set(document);
    return this.#functions.sum(SCRATCH_AT, document.length) >>> 0;
  }
}

let single: SingleRows | null = null;

/** A document as it is stored. */
export function storedRow(document: Uint8Array): Uint8Array {
  single ??= new SingleRows();
  const row = new Uint8Array(HEAD_BYTES + document.length);
  row[0] = 3;
  new DataView(row.buffer).setUint32(1, single.sum(document), true);
  row.set(document, HEAD_BYTES);
  return row;
}

/** The document in a stored row. Throws DamagedRowError when it is not the one that was written. */
export function documentIn(row: Uint8Array): Uint8Array {
  single ??= new SingleRows();
  const document = row.subarray(HEAD_BYTES);
  const view = new DataView(row.buffer, row.byteOffset, row.length);
  if (row.length <= HEAD_BYTES || view.getUint32(1, true) !== single.sum(document))
    throw new DamagedRowError('a row does not have the bytes that were written');
  return document;
}

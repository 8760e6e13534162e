import { readFileSync } from 'node:fs';
import { asset } from '../../../asset.ts';
import { BSON_TYPE } from '../../values/bson-types.ts';
import type { Slot, Slots } from '../../turns/slots.ts';
import type { Size } from '../../store.ts';
import { bytesIn, type SqlRow } from './connection.ts';

/** What precedes a document: 0x03, the checksum, NUL. Bytes. See rows.as.ts. */
export const HEAD_BYTES = 6;

interface Functions {
  readonly sum: (at: number, length: number) => number;
  readonly walk: (...[at, end, mostRows, mostBytes]: number[]) => number;
  readonly reverse: (at: number, end: number, to: number) => number;
  readonly rows: { readonly value: number };
  readonly last: { readonly value: number };
}

export interface WalkResult {
  readonly rows: number;
  /** Where they end, and where the document of the last one begins, from the start of the walk. */
  readonly length: number;
  readonly lastAt: number;
}

export class DamagedRowError extends Error {
  override readonly name = 'DamagedRowError';
}

let compiled: WebAssembly.Module | null = null;

function instantiate(memory: object): Functions {
  compiled ??= new WebAssembly.Module(readFileSync(asset('store/sqlite/file/rows.wasm')));
  return new WebAssembly.Instance(compiled, { env: { memory } }).exports as unknown as Functions;
}

export type RowWalk = ReturnType<typeof rowWalkIn>;

/**
 * Passes the first rows in a slot, of `length` bytes, until it has passed the rows or bytes of a size. Throws DamagedRowError
 * for a row that does not have its checksum.
 */
export function rowWalkIn(slots: Slots) {
  const functions = slots.over(instantiate);
  return ({ address }: Slot, length: number, { rows: most, bytes }: Size): WalkResult => {
    const { walk, rows, last } = functions();
    const end = walk(address, address + length, most, Math.min(bytes, length)) >>> 0;
    if (end === 0)
      throw new DamagedRowError(`row ${rows.value} of a batch does not have the bytes that were written`);
    return { rows: rows.value, length: end - address, lastAt: last.value - address + HEAD_BYTES };
  };
}

/**
 * Puts rows into the opposite order: copies those in one slot, of `length` bytes, to another one. Returns false when a row does
 * not have the length that was written.
 */
export function rowReversalIn(slots: Slots) {
  const functions = slots.over(instantiate);
  return ({ address: from }: Slot, length: number, { address: to }: Slot): boolean =>
    functions().reverse(from, from + length, to) === 1;
}

/** The wasm module's static data would lie below. */
const SCRATCH_AT = 65_536;
const PAGE = 65_536;
/** The size of the memory of StoredRows at the beginning. */
const FIRST_PAGES = 32;

/** The checksums of single rows, in a memory of their own. */
let single: { readonly memory: WebAssembly.Memory; readonly functions: Functions } | null = null;

function sumOf(document: Uint8Array): number {
  if (!single) {
    const own = new WebAssembly.Memory({ initial: 4, maximum: 1_024 });
    single = { memory: own, functions: instantiate(own) };
  }
  const { memory, functions } = single;
  const missing = SCRATCH_AT + document.length - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / PAGE));
  new Uint8Array(memory.buffer, SCRATCH_AT, document.length).set(document);
  return functions.sum(SCRATCH_AT, document.length) >>> 0;
}

/** A document as it is stored. */
export function storedRow(document: Uint8Array): Uint8Array {
  const row = Buffer.allocUnsafe(HEAD_BYTES + document.length);
  row[0] = BSON_TYPE.document;
  row.writeUInt32LE(sumOf(document), 1);
  row[HEAD_BYTES - 1] = 0;
  row.set(document, HEAD_BYTES);
  return row;
}

/** Documents as they are stored, one behind the other in a memory that their checksums are made in. It does not shrink. */
export class StoredRows {
  readonly #memory = new WebAssembly.Memory({ initial: FIRST_PAGES });
  readonly #sum = instantiate(this.#memory).sum;
  #bytes = new Uint8Array(this.#memory.buffer);
  #view = new DataView(this.#memory.buffer);
  #at = SCRATCH_AT;

  /** Their bytes, which is the place behind the last one. */
  get length(): number {
    return this.#at - SCRATCH_AT;
  }

  clear(): void {
    this.#at = SCRATCH_AT;
  }

  add(document: Uint8Array): void {
    const at = this.#at;
    this.#at += HEAD_BYTES + document.length;
    const missing = Math.ceil((this.#at - this.#bytes.length) / PAGE);
    if (missing > 0) this.#grow(Math.max(missing, this.#bytes.length / PAGE));
    this.#bytes[at] = BSON_TYPE.document;
    this.#bytes[at + HEAD_BYTES - 1] = 0;
    this.#bytes.set(document, at + HEAD_BYTES);
    this.#view.setUint32(at + 1, this.#sum(at + HEAD_BYTES, document.length), true);
  }

  /** The bytes between two places, until they are cleared or more are added. */
  between(from: number, to: number): Uint8Array {
    return new Uint8Array(this.#view.buffer, SCRATCH_AT + from, to - from);
  }

  #grow(pages: number): void {
    this.#memory.grow(pages);
    this.#bytes = new Uint8Array(this.#memory.buffer);
    this.#view = new DataView(this.#memory.buffer);
  }
}

/** The document in a stored row. Throws DamagedRowError when it is not the one that was written. */
export function documentIn(row: Uint8Array): Uint8Array {
  const document = row.subarray(HEAD_BYTES);
  const view = new DataView(row.buffer, row.byteOffset, row.length);
  const isWhole = row.length > HEAD_BYTES && row[0] === BSON_TYPE.document && row[HEAD_BYTES - 1] === 0;
  if (!isWhole || view.getUint32(1, true) !== sumOf(document))
    throw new DamagedRowError('a row does not have the bytes that were written');
  return document;
}

/** The document in a column of a query's row. Throws DamagedRowError when it is not one that was written. */
export function documentAt(row: SqlRow | undefined, column: string): Uint8Array {
  return documentIn(bytesIn(row, column) ?? new Uint8Array(0));
}

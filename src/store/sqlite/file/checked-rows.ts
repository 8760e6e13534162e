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

/** The wasm module's static data would lie below. */
const SCRATCH_AT = 65_536;
const PAGE = 65_536;

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
  const row = Buffer.allocUnsafe(storedLength(document));
  putRow(row, 0, document);
  return row;
}

/** The bytes that a document takes as it is stored. */
export function storedLength(document: Uint8Array): number {
  return HEAD_BYTES + document.length;
}

/** Puts a document as it is stored at a place of bytes that have room for it. */
export function putRow(bytes: Buffer, at: number, document: Uint8Array): void {
  bytes[at] = BSON_TYPE.document;
  bytes.writeUInt32LE(sumOf(document), at + 1);
  bytes[at + HEAD_BYTES - 1] = 0;
  bytes.set(document, at + HEAD_BYTES);
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

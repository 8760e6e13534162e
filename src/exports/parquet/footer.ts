import { readStruct, THRIFT, writeStruct, type Struct, type Value } from './thrift.ts';

/**
 * Files of Parquet that are made in pieces. The library writes each piece as a file of its own; here their row groups
 * are put one after another, below one footer
 * (https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift).
 *
 * A piece has the column chunks, then the piece's own footer, then the lengths of that footer and of the whole piece
 * (32 bits each). So whoever continues an unfinished file finds all row groups in it, from its end to its beginning.
 * Readers of the finished file see only what its footer names, and pass over the rest: about a kilobyte for each piece.
 */
export const MAGIC = Buffer.from('PAR1');

/** The bytes behind a footer of a piece. */
export const TRAILER_BYTES = 8;
/** The bytes behind the footer of a file: its length, and MAGIC. */
const END_BYTES = 8;

const FILE = { rows: 3, rowGroups: 4, facts: 5 };
const FACT = { key: 1, value: 2 };
const ROW_GROUP = { columns: 1, rows: 3, fileOffset: 5, ordinal: 7 };
const COLUMN = { metadata: 3, indexes: [4, 5, 6, 7] };
const CHUNK = {
  size: 7,
  dataPage: 9,
  indexPage: 10,
  dictionaryPage: 11,
  bloomFilter: 14,
  bloomFilterLength: 15,
};

/** The piece of a file that this file becomes. */
export function pieceOf(file: Uint8Array): Buffer {
  const end = file.length - END_BYTES;
  const length = Buffer.from(file.buffer, file.byteOffset, file.length).readUInt32LE(end);
  const footer = file.subarray(end - length, end);
  const chunks = file.subarray(MAGIC.length, endOfChunks(readStruct(footer)));
  const trailer = Buffer.alloc(TRAILER_BYTES);
  trailer.writeUInt32LE(length, 0);
  trailer.writeUInt32LE(chunks.length + length + TRAILER_BYTES, 4);
  return Buffer.concat([chunks, footer, trailer]);
}

/** A piece of a file: where it begins, and its footer. */
export interface Piece {
  readonly at: number;
  readonly footer: Uint8Array;
}

/** The encoded row groups of a piece, and the number of its rows. */
export function rowGroupsOf({ at, footer }: Piece): {
  readonly groups: readonly Uint8Array[];
  readonly rows: bigint;
} {
  const file = readStruct(footer);
  const shift = BigInt(at - MAGIC.length);
  const groups = structsOf(file, FILE.rowGroups).map((group) => writeStruct(shifted(group, shift)));
  return { groups, rows: numberOf(file, FILE.rows) };
}

/**
 * The end of a file: the footer with all row groups in order, its length, and MAGIC. `footer` is that of any piece, whose
 * columns all others share. `facts` are added to its metadata.
 */
export function endOfFile(
  footer: Uint8Array,
  groups: readonly Uint8Array[],
  rows: bigint,
  facts: Readonly<Record<string, string>>,
): Buffer {
  const file = readStruct(footer);
  const pairs = Object.entries(facts).map(([key, value]): Value => ({
    type: THRIFT.struct,
    members: new Map([
      [FACT.key, { type: THRIFT.binary, bytes: Buffer.from(key) }],
      [FACT.value, { type: THRIFT.binary, bytes: Buffer.from(value) }],
    ]),
  }));
  const known = structsOf(file, FILE.facts).map((members): Value => ({ type: THRIFT.struct, members }));
  const whole = writeStruct(
    new Map<number, Value>([
      ...file,
      [FILE.rows, { type: THRIFT.i64, number: rows }],
      [FILE.rowGroups, listOf(groups.map((raw) => ({ type: THRIFT.struct, raw })))],
      [FILE.facts, listOf([...known, ...pairs])],
    ]),
  );
  const length = Buffer.alloc(END_BYTES - MAGIC.length);
  length.writeUInt32LE(whole.length);
  return Buffer.concat([whole, length, MAGIC]);
}

/** The offset at which the last column chunk of a file ends. */
function endOfChunks(file: Struct): number {
  const ends = structsOf(file, FILE.rowGroups).flatMap((group) =>
    structsOf(group, ROW_GROUP.columns).map((column) => {
      const chunk = structOf(column, COLUMN.metadata);
      const begin = chunk.has(CHUNK.dictionaryPage) ? CHUNK.dictionaryPage : CHUNK.dataPage;
      return Number(numberOf(chunk, begin) + numberOf(chunk, CHUNK.size));
    }),
  );
  return Math.max(MAGIC.length, ...ends);
}

/**
 * A row group that stands `shift` bytes later. Indexes of pages and filters, which stand behind the row groups and hold
 * offsets themselves, are left out, as is its number.
 */
function shifted(group: Struct, shift: bigint): Struct {
  const columns = structsOf(group, ROW_GROUP.columns).map((column): Value => {
    const chunk = moved(structOf(column, COLUMN.metadata), shift, [
      CHUNK.dataPage,
      CHUNK.indexPage,
      CHUNK.dictionaryPage,
    ]);
    for (const id of [CHUNK.bloomFilter, CHUNK.bloomFilterLength]) chunk.delete(id);
    const members = new Map(column).set(COLUMN.metadata, { type: THRIFT.struct, members: chunk });
    for (const id of COLUMN.indexes) members.delete(id);
    return { type: THRIFT.struct, members };
  });
  const members = moved(group, shift, [ROW_GROUP.fileOffset]).set(ROW_GROUP.columns, listOf(columns));
  members.delete(ROW_GROUP.ordinal);
  return members;
}

function moved(struct: Struct, shift: bigint, offsets: readonly number[]): Map<number, Value> {
  const members = new Map(struct);
  for (const id of offsets)
    if (struct.has(id)) members.set(id, { type: THRIFT.i64, number: numberOf(struct, id) + shift });
  return members;
}

function listOf(values: readonly Value[]): Value {
  return { type: THRIFT.list, of: THRIFT.struct, values };
}

function structsOf(struct: Struct, id: number): readonly Struct[] {
  const list = struct.get(id);
  if (!list) return [];
  if (!('values' in list)) throw new TypeError(`the member ${id} is no list`);
  return list.values.map((value) => {
    if (!('members' in value)) throw new TypeError(`the member ${id} is no list of structs`);
    return value.members;
  });
}

function structOf(struct: Struct, id: number): Struct {
  const value = struct.get(id);
  if (!value || !('members' in value)) throw new TypeError(`the member ${id} is no struct`);
  return value.members;
}

function numberOf(struct: Struct, id: number): bigint {
  const value = struct.get(id);
  if (!value || !('number' in value)) throw new TypeError(`the member ${id} is no number`);
  return value.number;
}

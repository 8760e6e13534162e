import { Builder } from 'flatbuffers';
import { scaleOf, type Column, type ColumnKind } from './columns.ts';

/**
 * The messages of the Arrow IPC streaming format (https://arrow.apache.org/docs/format/Columnar.html). Their heads are
 * flatbuffers, with the numbers of Message.fbs and Schema.fbs of Arrow 1.5 of the format.
 */

/** Facts of a message or a schema that only those who know them read, by name. */
type Metadata = Readonly<Record<string, string>>;

/** A column of a record batch: the number of its nulls, and its buffers. Offsets from the beginning of the body, bytes. */
export interface Part {
  readonly nulls: number;
  readonly buffers: readonly { readonly at: number; readonly length: number }[];
}

const CONTINUATION = 0xffffffff;
const VERSION = 4; // V5
const HEADER = { schema: 1, recordBatch: 3 };
const TYPE = { int: 2, floatingPoint: 3, binary: 4, utf8: 5, bool: 6, decimal: 7, timestamp: 10 };
const DOUBLE_PRECISION = 2;
const MILLISECOND = 1;
const DIGITS = 38;

/** The metadata of columns, by their kinds. */
const FACTS: Partial<Record<ColumnKind, Metadata>> = {
  double: { 'sluice.numbers': 'nearest double' },
  json: { 'ARROW:extension:name': 'arrow.json', 'ARROW:extension:metadata': '' },
};

export const END_OF_STREAM = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0);

export function schemaMessage(columns: readonly Column[], metadata: Metadata): Uint8Array {
  const builder = new Builder(1024);
  const fields = vectorOf(
    builder,
    columns.map((column) => field(builder, column)),
  );
  const facts = keyValues(builder, metadata);
  builder.startObject(4);
  builder.addFieldOffset(1, fields, 0);
  builder.addFieldOffset(2, facts, 0);
  return message(builder, HEADER.schema, builder.endObject(), 0, {});
}

/** The head of a record batch, whose body of `length` bytes follows it. */
export function batchMessage(
  rows: number,
  parts: readonly Part[],
  length: number,
  metadata: Metadata,
): Uint8Array {
  const builder = new Builder(1024);
  const buffers = parts.flatMap((part) => part.buffers);
  builder.startVector(16, buffers.length, 8);
  for (const { at, length: size } of [...buffers].reverse()) addPair(builder, at, size);
  const buffersAt = builder.endVector();
  builder.startVector(16, parts.length, 8);
  for (const { nulls } of [...parts].reverse()) addPair(builder, rows, nulls);
  const nodesAt = builder.endVector();
  builder.startObject(4);
  builder.addFieldInt64(0, BigInt(rows), 0n);
  builder.addFieldOffset(1, nodesAt, 0);
  builder.addFieldOffset(2, buffersAt, 0);
  return message(builder, HEADER.recordBatch, builder.endObject(), length, metadata);
}

/** A struct of two 64-bit numbers. Flatbuffers are written from their end. */
function addPair(builder: Builder, first: number, second: number): void {
  builder.prep(8, 16);
  builder.writeInt64(BigInt(second));
  builder.writeInt64(BigInt(first));
}

function message(
  builder: Builder,
  kind: number,
  header: number,
  bodyLength: number,
  metadata: Metadata,
): Uint8Array {
  const facts = keyValues(builder, metadata);
  builder.startObject(5);
  builder.addFieldInt16(0, VERSION, 0);
  builder.addFieldInt8(1, kind, 0);
  builder.addFieldOffset(2, header, 0);
  builder.addFieldInt64(3, BigInt(bodyLength), 0n);
  builder.addFieldOffset(4, facts, 0);
  builder.finish(builder.endObject());
  const head = builder.asUint8Array();
  const size = Math.ceil(head.length / 8) * 8;
  const bytes = new Uint8Array(8 + size);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, CONTINUATION, true);
  view.setInt32(4, size, true);
  bytes.set(head, 8);
  return bytes;
}

function field(builder: Builder, { name, kind }: Column): number {
  const nameAt = builder.createString(name);
  const [type, typeAt] = typeOf(builder, kind);
  const children = vectorOf(builder, []);
  const facts = keyValues(builder, FACTS[kind] ?? {});
  builder.startObject(7);
  builder.addFieldOffset(0, nameAt, 0);
  builder.addFieldInt8(1, 1, 0); // nullable
  builder.addFieldInt8(2, type, 0);
  builder.addFieldOffset(3, typeAt, 0);
  builder.addFieldOffset(5, children, 0);
  builder.addFieldOffset(6, facts, 0);
  return builder.endObject();
}

/** The type of a column: its number in the union Type, and its table. */
function typeOf(builder: Builder, kind: ColumnKind): readonly [type: number, at: number] {
  switch (kind) {
    case 'integer':
      builder.startObject(2);
      builder.addFieldInt32(0, 64, 0);
      builder.addFieldInt8(1, 1, 0); // signed
      return [TYPE.int, builder.endObject()];
    case 'double':
      builder.startObject(1);
      builder.addFieldInt16(0, DOUBLE_PRECISION, 0);
      return [TYPE.floatingPoint, builder.endObject()];
    case 'date': {
      const zone = builder.createString('UTC');
      builder.startObject(2);
      builder.addFieldInt16(0, MILLISECOND, 0);
      builder.addFieldOffset(1, zone, 0);
      return [TYPE.timestamp, builder.endObject()];
    }
    case 'boolean':
      return [TYPE.bool, emptyTable(builder)];
    case 'binary':
      return [TYPE.binary, emptyTable(builder)];
    case 'text':
    case 'objectId':
    case 'uuid':
    case 'decimal':
    case 'json':
      return [TYPE.utf8, emptyTable(builder)];
    default:
      builder.startObject(3);
      builder.addFieldInt32(0, DIGITS, 0);
      builder.addFieldInt32(1, scaleOf(kind) ?? 0, 0);
      return [TYPE.decimal, builder.endObject()]; // of 128 bits
  }
}

function emptyTable(builder: Builder): number {
  builder.startObject(0);
  return builder.endObject();
}

/** A vector of pairs of strings. 0 when there are none, which leaves the member out. */
function keyValues(builder: Builder, metadata: Metadata): number {
  const pairs = Object.entries(metadata).map(([key, value]) => {
    const keyAt = builder.createString(key);
    const valueAt = builder.createString(value);
    builder.startObject(2);
    builder.addFieldOffset(0, keyAt, 0);
    builder.addFieldOffset(1, valueAt, 0);
    return builder.endObject();
  });
  return pairs.length === 0 ? 0 : vectorOf(builder, pairs);
}

function vectorOf(builder: Builder, offsets: readonly number[]): number {
  builder.startVector(4, offsets.length, 4);
  for (const offset of [...offsets].reverse()) builder.addOffset(offset);
  return builder.endVector();
}

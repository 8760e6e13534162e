/**
 * BSON written byte by byte, so that tests can contain what a BSON library would not write: duplicate keys,
 * invalid UTF-8, deprecated types, keys in any order.
 */
export interface Value {
  readonly type: number;
  readonly bytes: Buffer;
}
export type Field = readonly [name: string | Buffer, value: Value];

/** A document with these fields in this order. */
export function document(fields: readonly Field[]): Buffer {
  const parts = fields.flatMap(([name, { type, bytes }]) => [Buffer.of(type), cstring(name), bytes]);
  const body = Buffer.concat([...parts, Buffer.of(0)]);
  return Buffer.concat([int(body.length + 4), body]);
}

/** A row with an `_id` (here an integer) and these fields. */
export function row(id: number, fields: readonly Field[]): Buffer {
  return document([['_id', int32(id)], ...fields]);
}

export const double = (value: number): Value => ({
  type: 1,
  bytes: number(8, (b) => b.writeDoubleLE(value)),
});
export const string = (text: string | Buffer): Value => ({ type: 2, bytes: lengthAndText(text) });
export const object = (fields: readonly Field[]): Value => ({ type: 3, bytes: document(fields) });
export const array = (values: readonly Value[]): Value => ({
  type: 4,
  bytes: document(values.map((value, i) => [String(i), value])),
});
export const binary = (subtype: number, bytes: Uint8Array): Value => {
  const inner = subtype === 2 ? Buffer.concat([int(bytes.length), bytes]) : bytes;
  return { type: 5, bytes: Buffer.concat([int(inner.length), Buffer.of(subtype), inner]) };
};
export const undefinedValue: Value = { type: 6, bytes: Buffer.of() };
export const objectId = (hex: string): Value => ({ type: 7, bytes: Buffer.from(hex, 'hex') });
export const boolean = (value: boolean): Value => ({ type: 8, bytes: Buffer.of(value ? 1 : 0) });
export const date = (ms: bigint): Value => ({ type: 9, bytes: number(8, (b) => b.writeBigInt64LE(ms)) });
export const nullValue: Value = { type: 10, bytes: Buffer.of() };
export const regex = (pattern: string, options: string): Value => ({
  type: 11,
  bytes: Buffer.concat([cstring(pattern), cstring(options)]),
});
export const dbPointer = (namespace: string, hex: string): Value => ({
  type: 12,
  bytes: Buffer.concat([lengthAndText(namespace), Buffer.from(hex, 'hex')]),
});
export const code = (text: string): Value => ({ type: 13, bytes: lengthAndText(text) });
export const symbol = (text: string): Value => ({ type: 14, bytes: lengthAndText(text) });
export const codeWithScope = (text: string, scope: readonly Field[]): Value => {
  const body = Buffer.concat([lengthAndText(text), document(scope)]);
  return { type: 15, bytes: Buffer.concat([int(body.length + 4), body]) };
};
export const int32 = (value: number): Value => ({ type: 16, bytes: int(value) });
export const timestamp = (bits: bigint): Value => ({
  type: 17,
  bytes: number(8, (b) => b.writeBigUInt64LE(bits)),
});
export const int64 = (value: bigint): Value => ({
  type: 18,
  bytes: number(8, (b) => b.writeBigInt64LE(value)),
});
export const decimal128 = (bytes: Uint8Array): Value => ({ type: 19, bytes: Buffer.from(bytes) });
export const maxKey: Value = { type: 127, bytes: Buffer.of() };
export const minKey: Value = { type: 255, bytes: Buffer.of() };

function cstring(text: string | Buffer): Buffer {
  return Buffer.concat([Buffer.from(text), Buffer.of(0)]);
}

function lengthAndText(text: string | Buffer): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([int(bytes.length + 1), bytes, Buffer.of(0)]);
}

function int(value: number): Buffer {
  return number(4, (b) => b.writeInt32LE(value));
}

function number(size: number, write: (buffer: Buffer) => void): Buffer {
  const buffer = Buffer.alloc(size);
  write(buffer);
  return buffer;
}

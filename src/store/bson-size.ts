import { BSON_TYPE } from './bson-types.ts';

/** Sizes of values of a fixed size, in bytes, by type. */
const FIXED = new Int8Array(256).fill(-1);
for (const [type, size] of [
  [BSON_TYPE.double, 8],
  [BSON_TYPE.undefined, 0],
  [BSON_TYPE.objectId, 12],
  [BSON_TYPE.boolean, 1],
  [BSON_TYPE.date, 8],
  [BSON_TYPE.null, 0],
  [BSON_TYPE.int32, 4],
  [BSON_TYPE.timestamp, 8],
  [BSON_TYPE.int64, 8],
  [BSON_TYPE.decimal128, 16],
  [BSON_TYPE.maxKey, 0],
  [BSON_TYPE.minKey, 0],
] as const)
  FIXED[type] = size;

/** What precedes the bytes that the length of a value counts: the length, and a subtype. Bytes, by type. */
const COUNTED = new Int8Array(256).fill(-1);
for (const [type, size] of [
  [BSON_TYPE.string, 4],
  [BSON_TYPE.symbol, 4],
  [BSON_TYPE.code, 4],
  [BSON_TYPE.document, 0],
  [BSON_TYPE.array, 0],
  [BSON_TYPE.scopedCode, 0],
  [BSON_TYPE.binary, 5],
] as const)
  COUNTED[type] = size;

/** The number of bytes of the value at `at`. -1 for a type that is rare. */
export function sizeOfValue(document: Uint8Array, type: number, at: number): number {
  const fixed = FIXED[type] ?? -1;
  if (fixed >= 0) return fixed;
  const counted = COUNTED[type] ?? -1;
  if (counted < 0) return -1;
  const size = sizeAt(document, at);
  return size < 0 ? -1 : counted + size;
}

/** The int32 at `at`, as documents and strings begin with their length. */
export function sizeAt(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] ?? 0) |
    ((bytes[at + 1] ?? 0) << 8) |
    ((bytes[at + 2] ?? 0) << 16) |
    ((bytes[at + 3] ?? 0) << 24)
  );
}

/** The types of BSON elements (https://bsonspec.org/spec.html), by which values are recognized in bytes. */
export const BSON_TYPE = {
  double: 0x01,
  string: 0x02,
  document: 0x03,
  array: 0x04,
  binary: 0x05,
  undefined: 0x06,
  objectId: 0x07,
  boolean: 0x08,
  date: 0x09,
  null: 0x0a,
  regularExpression: 0x0b,
  dbPointer: 0x0c,
  code: 0x0d,
  symbol: 0x0e,
  scopedCode: 0x0f,
  int32: 0x10,
  timestamp: 0x11,
  int64: 0x12,
  decimal128: 0x13,
  maxKey: 0x7f,
  minKey: 0xff,
} as const;

/**
 * BSON's order of types, in which all numbers have one rank: MongoDB's `canonicalizeBSONType`. Keys of the embedded store
 * begin with these numbers, so they can never change.
 */
export const BSON_RANK = {
  null: 5,
  number: 10,
  string: 15,
  document: 20,
  array: 25,
  binary: 30,
  objectId: 35,
  boolean: 40,
  date: 45,
  timestamp: 47,
  regularExpression: 50,
  code: 60,
  scopedCode: 65,
  maxKey: 127,
} as const;

/**
 * Of each type: the rank that its keys begin with in the embedded store (MinKey and undefined have one each above 0,
 * which is below every key), the bytes of its values where all have as many, and else what precedes those that the
 * length of a value counts: the length, and a subtype. -1: neither, the type is rare.
 */
const FORMS: readonly (readonly [type: number, rank: number, fixed: number, counted?: number])[] = [
  [BSON_TYPE.minKey, 1, 0],
  [BSON_TYPE.undefined, 2, 0],
  [BSON_TYPE.null, BSON_RANK.null, 0],
  [BSON_TYPE.double, BSON_RANK.number, 8],
  [BSON_TYPE.int32, BSON_RANK.number, 4],
  [BSON_TYPE.int64, BSON_RANK.number, 8],
  [BSON_TYPE.decimal128, BSON_RANK.number, 16],
  [BSON_TYPE.string, BSON_RANK.string, -1, 4],
  [BSON_TYPE.symbol, BSON_RANK.string, -1, 4],
  [BSON_TYPE.document, BSON_RANK.document, -1, 0],
  [BSON_TYPE.array, BSON_RANK.array, -1, 0],
  [BSON_TYPE.binary, BSON_RANK.binary, -1, 5],
  [BSON_TYPE.objectId, BSON_RANK.objectId, 12],
  [BSON_TYPE.boolean, BSON_RANK.boolean, 1],
  [BSON_TYPE.date, BSON_RANK.date, 8],
  [BSON_TYPE.timestamp, BSON_RANK.timestamp, 8],
  [BSON_TYPE.regularExpression, BSON_RANK.regularExpression, -1],
  [BSON_TYPE.dbPointer, 55, -1],
  [BSON_TYPE.code, BSON_RANK.code, -1, 4],
  [BSON_TYPE.scopedCode, BSON_RANK.scopedCode, -1, 0],
  [BSON_TYPE.maxKey, BSON_RANK.maxKey, 0],
];

const RANKS = new Map(FORMS.map(([type, rank]) => [type, rank]));
const FIXED = new Int8Array(256).fill(-1);
const COUNTED = new Int8Array(256).fill(-1);
for (const [type, , fixed, counted = -1] of FORMS) {
  FIXED[type] = fixed;
  COUNTED[type] = counted;
}

/** The rank of the values of a BSON type in BSON's order. Throws TypeError for a type that BSON does not have. */
export function rankOf(type: number): number {
  const rank = RANKS.get(type);
  if (rank === undefined) throw new TypeError(`BSON has no type ${type}`);
  return rank;
}

/** The number of bytes of the value at `at`. -1 for a type that is rare. */
export function sizeOfValue(document: Uint8Array, type: number, at: number): number {
  const fixed = FIXED[type] ?? -1;
  if (fixed >= 0) return fixed;
  const counted = COUNTED[type] ?? -1;
  if (counted < 0) return -1;
  const size = int32At(document, at);
  return size < 0 ? -1 : counted + size;
}

/** The int32 at `at`, which documents and strings begin with as their length. */
export function int32At(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] ?? 0) |
    ((bytes[at + 1] ?? 0) << 8) |
    ((bytes[at + 2] ?? 0) << 16) |
    ((bytes[at + 3] ?? 0) << 24)
  );
}

const EIGHT = new Uint8Array(8);
const DOUBLE = new DataView(EIGHT.buffer);

/** The double at `at`. A view of each document would be most of what it costs. */
export function doubleAt(bytes: Uint8Array, at: number): number {
  for (let n = 0; n < 8; n++) EIGHT[n] = bytes[at + n] ?? 0;
  return DOUBLE.getFloat64(0, true);
}

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
 * BSON's order of values of different types: MongoDB's `canonicalizeBSONType`. All numbers have one rank, and so have
 * strings and symbols. The keys of the embedded store begin with these numbers, so they can never change.
 */
export const BSON_RANK = {
  minKey: -1,
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
 * The rank that the key of each type begins with in the embedded store. MinKey and undefined have one each above 0,
 * which is below every key.
 */
const RANKS: ReadonlyMap<number, number> = new Map<number, number>([
  [BSON_TYPE.minKey, 1],
  [BSON_TYPE.undefined, 2],
  [BSON_TYPE.null, BSON_RANK.null],
  [BSON_TYPE.double, BSON_RANK.number],
  [BSON_TYPE.int32, BSON_RANK.number],
  [BSON_TYPE.int64, BSON_RANK.number],
  [BSON_TYPE.decimal128, BSON_RANK.number],
  [BSON_TYPE.string, BSON_RANK.string],
  [BSON_TYPE.symbol, BSON_RANK.string],
  [BSON_TYPE.document, BSON_RANK.document],
  [BSON_TYPE.array, BSON_RANK.array],
  [BSON_TYPE.binary, BSON_RANK.binary],
  [BSON_TYPE.objectId, BSON_RANK.objectId],
  [BSON_TYPE.boolean, BSON_RANK.boolean],
  [BSON_TYPE.date, BSON_RANK.date],
  [BSON_TYPE.timestamp, BSON_RANK.timestamp],
  [BSON_TYPE.regularExpression, BSON_RANK.regularExpression],
  [BSON_TYPE.dbPointer, 55],
  [BSON_TYPE.code, BSON_RANK.code],
  [BSON_TYPE.scopedCode, BSON_RANK.scopedCode],
  [BSON_TYPE.maxKey, BSON_RANK.maxKey],
]);

/** The rank of the values of a BSON type in BSON's order. Throws TypeError for a type that BSON does not have. */
export function rankOf(type: number): number {
  const rank = RANKS.get(type);
  if (rank === undefined) throw new TypeError(`BSON has no type ${type}`);
  return rank;
}

import { Binary, Code, Decimal128, Double, MaxKey, MinKey, ObjectId, Timestamp } from '../bson.ts';
import { BSON_TYPE } from '../bson-types.ts';

/**
 * A clustered collection read in descending order accepts neither `min` nor `max` (MongoDB error 6137402). A filter in
 * full BSON order (`$expr`) makes the server scan everything above. Only a plain comparison becomes bounds of the
 * scan, and it matches values of its own type only ("type bracketing"). So the ids below an id are read bracket by
 * bracket: the rest of the id's own bracket, then the types below it in descending order. Each is a bounded scan. In a
 * collection whose ids have one type, only the first bracket is ever read, and at its very end one look checks for
 * anything below.
 */
export interface Bracket {
  readonly filter: { readonly _id: Readonly<Record<string, unknown>> };
  /** The lowest value that the bracket can hold. Reading goes on when there is a row below it. */
  readonly floor: { readonly value: unknown };
}

/** A subclass of Date, because BSON's earliest date (int64 milliseconds) is beyond the range of a Date. */
class EarliestDate extends Date {
  override getTime(): number {
    return -(2 ** 63);
  }
}

/**
 * The types that an _id can have, in the order of BSON_RANK (a test compares), with the lowest value of each. NaN is
 * below all numbers, and only a comparison with NaN itself finds it, so it has its own bracket.
 */
const BRACKETS: readonly {
  readonly types: readonly number[];
  readonly lowest: unknown;
  readonly alone?: true;
}[] = [
  { types: [BSON_TYPE.minKey], lowest: new MinKey(), alone: true },
  { types: [BSON_TYPE.null], lowest: null, alone: true },
  { types: [], lowest: NaN, alone: true },
  { types: [BSON_TYPE.double, BSON_TYPE.int32, BSON_TYPE.int64, BSON_TYPE.decimal128], lowest: -Infinity },
  { types: [BSON_TYPE.string, BSON_TYPE.symbol], lowest: '' },
  { types: [BSON_TYPE.document], lowest: {} },
  { types: [BSON_TYPE.binary], lowest: new Binary(new Uint8Array(0), 0) },
  { types: [BSON_TYPE.objectId], lowest: new ObjectId('000000000000000000000000') },
  { types: [BSON_TYPE.boolean], lowest: false },
  { types: [BSON_TYPE.date], lowest: new EarliestDate(0) },
  { types: [BSON_TYPE.timestamp], lowest: new Timestamp({ t: 0, i: 0 }) },
  { types: [BSON_TYPE.code], lowest: new Code('') },
  { types: [BSON_TYPE.scopedCode], lowest: new Code('', {}) },
  { types: [BSON_TYPE.maxKey], lowest: new MaxKey(), alone: true },
];
const NAN_BRACKET = BRACKETS.findIndex(({ lowest }) => Number.isNaN(lowest));

/**
 * The brackets of everything below an id of the given BSON type, in descending order. Throws TypeError for a type that
 * no _id has.
 */
export function bracketsBelow(id: unknown, type: number): Bracket[] {
  const own = isNaNValue(id) ? NAN_BRACKET : BRACKETS.findIndex(({ types }) => types.includes(type));
  if (own < 0) throw new TypeError(`no _id is of BSON type ${type}`);
  return BRACKETS.slice(0, own + 1)
    .reverse()
    .map(({ lowest, alone }, distance) => {
      if (distance === 0) return { filter: { _id: { $lt: id } }, floor: { value: lowest } };
      return { filter: { _id: { [alone ? '$eq' : '$gte']: lowest } }, floor: { value: lowest } };
    });
}

function isNaNValue(id: unknown): boolean {
  return (id instanceof Double || id instanceof Decimal128) && id.toString() === 'NaN';
}

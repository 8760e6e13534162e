import { Binary, Code, Decimal128, Double, MaxKey, MinKey, ObjectId, Timestamp } from '../bson.ts';

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
 * The types that an _id can have, as BSON type numbers in BSON's order (canonicalizeBSONType in the server's source),
 * with the lowest value of each. NaN is below all numbers, and only a comparison with NaN itself finds it, so it has
 * its own bracket.
 */
const BRACKETS: readonly {
  readonly types: readonly number[];
  readonly lowest: unknown;
  readonly alone?: true;
}[] = [
  { types: [0xff], lowest: new MinKey(), alone: true },
  { types: [0x0a], lowest: null, alone: true },
  { types: [], lowest: NaN, alone: true },
  { types: [0x01, 0x10, 0x12, 0x13], lowest: -Infinity },
  { types: [0x02, 0x0e], lowest: '' },
  { types: [0x03], lowest: {} },
  { types: [0x05], lowest: new Binary(new Uint8Array(0), 0) },
  { types: [0x07], lowest: new ObjectId('000000000000000000000000') },
  { types: [0x08], lowest: false },
  { types: [0x09], lowest: new EarliestDate(0) },
  { types: [0x11], lowest: new Timestamp({ t: 0, i: 0 }) },
  { types: [0x0d], lowest: new Code('') },
  { types: [0x0f], lowest: new Code('', {}) },
  { types: [0x7f], lowest: new MaxKey(), alone: true },
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

import { Binary, Code, Decimal128, Double, MaxKey, MinKey, ObjectId, Timestamp } from '../../values/bson.ts';
import { BSON_TYPE } from '../../values/bson-types.ts';

/** A subclass of Date, because BSON's earliest date (int64 milliseconds) is beyond the range of a Date. */
class EarliestDate extends Date {
  override getTime(): number {
    return -(2 ** 63);
  }
}

/** Values of types that MongoDB compares with each other. A comparison in a query matches values of its bracket only. */
interface TypeBracket {
  readonly types: readonly number[];
  readonly lowest: unknown;
  /** The bracket has one value only. */
  readonly alone?: true;
}

/**
 * The types that an _id can have, in the order of BSON_RANK (a test compares), with the lowest value of each. NaN is
 * below all numbers, and only a comparison with NaN itself finds it, so it has its own bracket.
 */
export const BRACKETS: readonly TypeBracket[] = [
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

/** The lowest value of the bracket of a BSON type. Throws TypeError for a type that has no range. */
export function lowestOf(type: number): unknown {
  return BRACKETS[placeOf(type)]?.lowest;
}

/**
 * The lowest value of the next bracket: an exclusive upper end. Between timestamps and code lie regular expressions,
 * so the highest timestamp is an inclusive one.
 */
export function endOf(type: number): { readonly value: unknown; readonly isInclusive: boolean } {
  if (type === BSON_TYPE.timestamp)
    return { value: new Timestamp({ t: 0xffffffff, i: 0xffffffff }), isInclusive: true };
  const next = BRACKETS[placeOf(type) + 1];
  return next ? { value: next.lowest, isInclusive: false } : { value: new MaxKey(), isInclusive: true };
}

/**
 * A clustered collection read in descending order accepts neither `min` nor `max` (MongoDB error 6137402). A filter in
 * full BSON order (`$expr`) makes the server scan everything above. Only a plain comparison becomes bounds of the
 * scan, and it matches values of its own type only ("type bracketing"). So the ids below an id are read bracket by
 * bracket: the rest of the id's own bracket, then the types below it in descending order. Each condition is a bounded
 * scan. In a collection whose ids have one type, all but the first find nothing, at the very end. Throws TypeError for a
 * type that no _id has.
 */
export function bracketsBelow(id: unknown, type: number): Readonly<Record<string, unknown>>[] {
  const own = isNaNValue(id) ? NAN_BRACKET : placeOf(type);
  const below = BRACKETS.slice(1, own).reverse(); // without MinKey, which is no key of a row
  return [{ $lt: id }, ...below.map(({ lowest, alone }) => ({ [alone ? '$eq' : '$gte']: lowest }))];
}

/** Whether a value is NaN, as a double or as a decimal. */
export function isNaNValue(value: unknown): boolean {
  return (value instanceof Double || value instanceof Decimal128) && value.toString() === 'NaN';
}

function placeOf(type: number): number {
  const place = BRACKETS.findIndex(({ types }) => types.includes(type));
  if (place < 0) throw new TypeError(`values of BSON type ${type} have no range`);
  return place;
}

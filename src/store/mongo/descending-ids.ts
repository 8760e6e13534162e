import { Binary, Code, Decimal128, Double, MaxKey, MinKey, ObjectId, Timestamp } from '../bson.ts';

/**
 * A clustered collection read downwards takes neither `min` nor `max` (MongoDB error 6137402), and a filter in full BSON
 * order (`$expr`) is answered by a scan of everything above. What does become bounds of the scan is a plain comparison, and
 * that one sees values of its own type only ("type bracketing"). So what lies below an id is read bracket by
 * bracket: the rest of the id's own, then the types below it, from the highest down. Each is a bounded scan; in a
 * collection of ids of one type only the first is ever asked for, and at its very end one look for anything below.
 */
export interface Bracket {
  readonly filter: { readonly _id: Readonly<Record<string, unknown>> };
  /** The lowest value the bracket can hold: whether there is a row below it tells whether to go on. */
  readonly floor: { readonly value: unknown };
}

/** A date subclass, because the earliest date BSON can hold (int64 milliseconds) is beyond what a Date can. */
class EarliestDate extends Date {
  override getTime(): number {
    return -(2 ** 63);
  }
}

/**
 * The types an _id can have, in BSON's order (canonicalizeBSONType in the server's source), with the lowest value of
 * each; by BSON type numbers. NaN is below all numbers and no comparison but its own finds it, so it stands alone.
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

/** The brackets that hold everything below an id of the given BSON type, from the highest down. TypeError for a type no _id has. */
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

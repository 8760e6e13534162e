import { BRACKETS, NAN_BRACKET, isNaNValue } from './type-brackets.ts';

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

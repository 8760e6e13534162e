import { MaxKey, MinKey } from '../../values/bson.ts';
import type { Equality } from '../../store.ts';
import type { ValueRange } from '../../plan.ts';
import { lowestOf } from './type-brackets.ts';

export type Condition = Readonly<Record<string, unknown>>;

/** The query conditions that rows with these values meet, by path. */
export function conditionsOf(equals: readonly Equality[]): Condition {
  return Object.fromEntries(equals.map(({ path, value }) => [path, conditionOf(value)]));
}

/** An index holds null and missing as one key, and undefined as another, but `$eq: null` matches all three. */
export function conditionOf(value: unknown): Condition {
  return value === null ? { $eq: null, $not: { $type: 'undefined' } } : { $eq: value };
}

/** A condition as an index without arrays means it: a query would look into arrays on the way and at the end. */
export function withoutArrays(path: string, condition: Condition): readonly Condition[] {
  const names = path.split('.');
  const ways = names.map((_, n) => names.slice(0, n + 1).join('.'));
  return [{ [path]: condition }, ...ways.map((way) => ({ [way]: { $not: { $type: 'array' } } }))];
}

/** The server compares within the bracket of the operand's type. NaN is in no range: it only compares with itself. */
export function rangeCondition({ bracket, low, high }: ValueRange): Condition {
  const isOpen = !low && !high;
  return {
    ...(low && { [low.isInclusive ? '$gte' : '$gt']: low.value }),
    ...(high && { [high.isInclusive ? '$lte' : '$lt']: high.value }),
    ...(isOpen && bracketCondition(bracket)),
  };
}

/** The condition of every value of a type bracket. NaN is left out. */
function bracketCondition(bracket: number): Condition {
  const lowest = lowestOf(bracket);
  if (lowest === null) return conditionOf(null);
  return lowest instanceof MinKey || lowest instanceof MaxKey ? { $eq: lowest } : { $gte: lowest };
}

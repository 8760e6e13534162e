import { BSON_TYPE } from '../../../src/store/values/bson-types.ts';
import { numbersShownAs } from '../../../src/store/values/decimal.ts';
import type { ValueRange } from '../../../src/store/plan.ts';

/**
 * The finite numbers from one bound to another, both inclusive and in the digits that rows show. A text such as 0.1 is
 * shown for a double and for a decimal, which differ: a range begins at the lower and ends at the higher of the two.
 * Numbers that are shown as null (infinities, NaN) are in no range. TypeError for a text that is no number, or one that no
 * Decimal128 holds exactly.
 */
export function numberRange(low: string | undefined, high: string | undefined): ValueRange {
  const first = low === undefined ? undefined : numbersShownAs(low)[0];
  const last = high === undefined ? undefined : numbersShownAs(high).at(-1);
  return {
    bracket: BSON_TYPE.int32,
    low: first ? { value: first, isInclusive: true } : { value: -Infinity, isInclusive: false },
    high: last ? { value: last, isInclusive: true } : { value: Infinity, isInclusive: false },
  };
}

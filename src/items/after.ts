import type { AfterForm } from '../streams/after.ts';
import { parseNumber } from './price-number.ts';

/** An item is named by `price,id` in price order. An id may contain commas, a price contains none. */
export const ITEM_AFTER: AfterForm = {
  expected: 'the price and id of a row as its JSON shows them, separated by a comma',
  split: (given) => {
    const comma = given.indexOf(',');
    const value = given.slice(0, Math.max(0, comma));
    return value === 'null' || parseNumber(value) !== null ? { id: given.slice(comma + 1), value } : null;
  },
  isShown: (shown, value) => shown === value,
  parse: (value, like) => (value === 'null' ? null : (parseNumber(value, like) ?? undefined)),
};

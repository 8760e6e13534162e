import { AppError } from '../errors.ts';
import { documented, text } from '../input/parameter.ts';
import { quote } from '../input/query.ts';
import { itemToJson } from '../rows/item.ts';
import { Selection } from '../rows/selection.ts';
import { documentOf } from '../store/batch.ts';
import { bookmarkOf, KEY, keyOf, makeBookmark, type Bookmark } from '../store/bookmark.ts';
import type { ItemStore, Plan } from '../store/store.ts';
import { candidateIds, type DetectedIdType } from './id.ts';
import { parseNumber } from './number.ts';
import { MAX_KEY_BYTES } from './query.ts';

/** The 64 extra bytes hold a price of at most 48 characters (Decimal128) and the comma after it. */
export const afterParameter = documented(
  text('after', MAX_KEY_BYTES + 64),
  'Continue after the row with this id, or with this `price,id` in price order, as its JSON shows them. The row may have been deleted or changed since.',
);

const PRICE = new Selection({ fields: ['price'] });

interface Options {
  readonly items: ItemStore;
  readonly idType: (signal: AbortSignal) => Promise<DetectedIdType>;
  readonly signal: AbortSignal;
}

/**
 * Resolves to the bookmark that `after` stands for. `after` names a row as its JSON shows it: by its id in id order, by
 * `price,id` in price order. The row may no longer exist. A text can be ids of several types, and a price can be
 * numbers of several types that differ (0.1 as a double and as a decimal). The row that exists then decides, or else
 * the first row of the collection. AppError `invalid-parameter` when no row can be named so.
 */
export async function readAfter(given: string, plan: Plan, options: Options): Promise<Bookmark> {
  const { id, price } = split(given, plan);
  const ids = candidateIds(id, await options.idType(options.signal));
  for (const candidate of ids) {
    const batch = await options.items.get(candidate, options.signal);
    if (!batch) continue;
    try {
      const row = documentOf(batch);
      if (price === null || shows(row, price)) return bookmarkOf(row, plan);
      return makeKey(price, candidate, priceOf(row)); // its price has changed since
    } finally {
      batch.release();
    }
  }
  const [likeliest] = ids;
  if (!likeliest) throw refused(plan, given);
  return price === null ? likeliest : makeKey(price, likeliest, await firstPrice(plan, options));
}

/** An id may contain commas, a price contains none. */
function split(given: string, plan: Plan): { readonly id: string; readonly price: string | null } {
  if (plan.sort === KEY) return { id: given, price: null };
  const comma = given.indexOf(',');
  const price = given.slice(0, Math.max(0, comma));
  if (price !== 'null' && parseNumber(price) === null) throw refused(plan, given);
  return { id: given.slice(comma + 1), price };
}

/** Whether a row's JSON has exactly this price. */
function shows(row: Uint8Array, price: string): boolean {
  return itemToJson(row, PRICE).endsWith(`,"price":${price}}`);
}

function makeKey(price: string, id: Bookmark, like: unknown): Bookmark {
  const value = price === 'null' ? null : parseNumber(price, like);
  return makeBookmark({ price: value, _id: keyOf(id)._id });
}

function priceOf(row: Uint8Array): unknown {
  return keyOf(bookmarkOf(row, { sort: 'price' })).price;
}

/** The price of the plan's first row: the prices of one collection are mostly of one type. */
async function firstPrice(plan: Plan, { items, signal }: Options): Promise<unknown> {
  const batch = await items.read(plan, {}, { rows: 1, bytes: 1 }, signal);
  try {
    return batch.last ? keyOf(batch.last).price : null;
  } finally {
    batch.release();
  }
}

function refused(plan: Plan, given: string): AppError {
  const expected =
    plan.sort === KEY
      ? 'the id of a row as its JSON shows it, of a type that ids of this collection have'
      : 'the price and id of a row as its JSON shows them, separated by a comma';
  return new AppError('invalid-parameter', `after must be ${expected}; got ${quote(given)}.`, {
    parameter: 'after',
  });
}

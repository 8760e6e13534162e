import assert from 'node:assert/strict';
import {
  BSON,
  Decimal128,
  Double,
  Int32,
  Long,
  ObjectId,
  UUID,
  type Document,
} from '../../../src/store/values/bson.ts';
import { bookmarkOf, type RowOrder } from '../../../src/store/bookmark.ts';
import { compareKeys } from '../../../src/store/values/keys.ts';
import { comparePlaces, compareValues, keyOfPlace } from '../../../src/store/values/order.ts';
import type { OnConflict, OwnedCollection, Plan } from '../../../src/store/store.ts';
import type { ValueRange } from '../../../src/store/plan.ts';

/** An item made by a test, with the BSON that the store must return byte for byte. */
export interface Item {
  readonly id: Id;
  readonly category: string;
  readonly price: Price;
  readonly bytes: Buffer;
}

export type Id = Int32 | Long | Double | string | UUID | ObjectId;
export type Price = Int32 | Long | Double | Decimal128;

export const CATEGORIES = ['books', 'größe', 'b'] as const;

/** An item with these key values. `note` distinguishes two items with the same key. */
export function makeItem(id: Id, category: string, price: Price, note = ''): Item {
  const bytes = Buffer.from(BSON.serialize({ _id: id, note, price, tags: { deep: [1, 'é'] }, category }));
  return { id, category, price, bytes };
}

/**
 * Makes the same items every time. The ids have all types in turn (negative and huge integers, strings that
 * are prefixes of one another, contain NUL or are not ASCII). The few prices have three number types, so that
 * there are many ties.
 */
export function makeItems(count: number): Item[] {
  return Array.from({ length: count }, (_, n) => {
    const scattered = (n * 7919) % 104_729; // a prime larger than any count here: every n gives another value
    const category = CATEGORIES[scattered % CATEGORIES.length] ?? '';
    return makeItem(idOf(n, scattered), category, priceOf(scattered % 17));
  });
}

function idOf(n: number, scattered: number): Id {
  const digits = String(scattered).padStart(12, '0');
  switch (n % 8) {
    case 0:
      return new Int32(scattered - 50_000);
    case 1:
      return new Double(scattered + 200_000);
    case 2:
      return Long.fromBigInt(2n ** 53n + BigInt(scattered)); // neighbours that a double cannot distinguish
    case 3:
      return `text${digits.slice(8)}`;
    case 4:
      return `text${digits.slice(8)}\0${scattered % 3 === 0 ? '\0' : 'é'}`;
    case 5:
      return `${'té𝄞字'.slice(scattered % 3)}${scattered}`;
    case 6:
      return new UUID(Buffer.from(digits.padStart(32, scattered % 2 === 0 ? 'f' : '0'), 'hex'));
    default:
      return new ObjectId(digits.padStart(24, scattered % 2 === 0 ? 'f' : '0'));
  }
}

function priceOf(n: number): Price {
  if (n === 0) return new Double(-0);
  if (n === 1) return new Int32(0);
  if (n === 2) return Long.fromBigInt(-(2n ** 60n) - 1n);
  if (n === 3) return new Double(-(2 ** 60));
  if (n % 3 === 0) return new Int32(n - 8);
  return n % 3 === 1 ? new Double(n / 4) : Long.fromNumber(n);
}

type Rows = Pick<OwnedCollection, 'insert'>;

/** Writes items. Without `onConflict`, an id that exists is refused. */
export function insertItems(rows: Rows, items: readonly Item[], onConflict: OnConflict = 'fail') {
  return rows.insert(
    items.map(({ bytes }) => bytes),
    onConflict,
  );
}

/** Writes rows of any form. Without `onConflict`, an id that exists is refused. */
export function insertDocuments(rows: Rows, documents: readonly Document[], onConflict: OnConflict = 'fail') {
  return rows.insert(
    documents.map((document) => BSON.serialize(document)),
    onConflict,
  );
}

/** The part of a plan that reads the items of one category only. */
export function inCategory(category: string): { readonly equals: NonNullable<Plan['equals']> } {
  return { equals: [{ path: 'category', value: category }] };
}

/** The category that a plan reads. Undefined when it reads all. */
export function categoryOf({ equals = [] }: Plan): string | undefined {
  const [equality, ...others] = equals;
  assert.ok(others.length === 0 && (!equality || equality.path === 'category'));
  return equality && String(equality.value);
}

/** The items that a store must return for a plan, by a filter and a sort. test/store/values/order.test.ts compares the order with mongod's. */
export function expectedItems(items: readonly Item[], plan: Plan): Item[] {
  const wanted = categoryOf(plan);
  return items
    .filter(({ category }) => wanted === undefined || category === wanted)
    .filter(({ price }) => isInRange(price, plan.range))
    .map((item) => ({ item, place: keyOfPlace(bookmarkOf(item.bytes, plan)) }))
    .sort((a, b) => compareKeys(a.place, b.place) * plan.direction)
    .map(({ item }) => item);
}

/** Whether a finite price lies in a range of prices. Its bounds are inclusive where they are finite. */
export function isInRange(
  price: Price,
  { low, high }: Partial<Pick<ValueRange, 'low' | 'high'>> = {},
): boolean {
  const isAbove = !low || typeof low.value === 'number' || compareValues(price, low.value) >= 0;
  return isAbove && (!high || typeof high.value === 'number' || compareValues(price, high.value) <= 0);
}

/** Compares two items in a plan's order, ascending, by the order of BSON. */
export function compareItems(a: Item, b: Item, plan: RowOrder): number {
  return comparePlaces(bookmarkOf(a.bytes, plan), bookmarkOf(b.bytes, plan));
}

/** The digits of a price in JSON. */
export function shown(price: Price): string {
  return price instanceof Double ? String(price.value) : price.toString();
}

/** Compares the numbers with these digits. Returns a negative number, 0 or a positive number. */
export function compareDigits(a: string, b: string): number {
  const left = places(a);
  const right = places(b);
  const scale = Math.max(left.behind, right.behind);
  const difference =
    left.digits * 10n ** BigInt(scale - left.behind) - right.digits * 10n ** BigInt(scale - right.behind);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

function places(text: string): { digits: bigint; behind: number } {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return { digits: BigInt(whole + fraction), behind: fraction.length - Number(exponent) };
}

/**
 * All digits of a price. A double below 2^53 has at most 1074 digits behind its point, a larger one has none.
 */
export function exactDigits(price: Price): string {
  if (!(price instanceof Double)) return price.toString();
  const { value } = price;
  if (Number.isInteger(value)) return String(BigInt(value));
  let scaled = value;
  let behind = 0;
  for (; !Number.isInteger(scaled); behind++) scaled *= 2;
  return `${BigInt(scaled) * 5n ** BigInt(behind)}e-${behind}`;
}

import { Decimal128 } from '../bson.ts';
import type { Bookmark } from '../bookmark.ts';
import { AppError } from '../../errors.ts';
import { BSON_TYPE } from '../bson-types.ts';
import { fieldsOf } from './fields.ts';
import { joinKeys, keyOfValue, numberOf, stringKey } from '../keys.ts';
import type { Key, Value } from '../keys.ts';
import type { IndexName } from './tables.ts';

/**
 * The longest id and category that this store accepts, in bytes. The longest key, (category, price, id), then has
 * 1,041 of 1,978 bytes.
 */
export const LONGEST_STRING = 256;
/** MongoDB's limit, so that both stores accept the same rows. Bytes. */
export const LARGEST_ROW = 16 * 1024 * 1024;

/** A row to be written: the document and the keys under which it is found. */
export class KeyedRow {
  readonly document: Uint8Array;
  /** The value of `_id` as it is in the document. */
  readonly idValue: Value;
  readonly id: Key;
  readonly #category: Key;
  readonly #price: Key;

  constructor(document: Uint8Array, idValue: Value, id: Key, category: Key, price: Key) {
    this.document = document;
    this.idValue = idValue;
    this.id = id;
    this.#category = category;
    this.#price = price;
  }

  get byPrice(): Key {
    return joinKeys(...this.partsOf('byPrice'));
  }

  get byCategory(): Key {
    return joinKeys(...this.partsOf('byCategory'));
  }

  get byCategoryPrice(): Key {
    return joinKeys(...this.partsOf('byCategoryPrice'));
  }

  /** The keys that the entry of an index consists of. */
  partsOf(index: IndexName): readonly Key[] {
    switch (index) {
      case 'byPrice':
        return [this.#price, this.id];
      case 'byCategory':
        return [this.#category, this.id];
      case 'byCategoryPrice':
        return [this.#category, this.#price, this.id];
    }
  }
}

export const FIELDS = ['_id', 'category', 'price'];

/**
 * A row with its keys. Returns a text instead, with what was expected and what was found, when the store refuses the
 * row.
 */
export function keyRow(document: Uint8Array): KeyedRow | string {
  if (document.length > LARGEST_ROW) return `a row has at most ${LARGEST_ROW} bytes, got ${document.length}`;
  const values = fieldsOf(document, FIELDS);
  if (typeof values === 'string') return values;
  const [idValue] = values;
  const id = idKey(idValue);
  if (typeof id === 'string') return id;
  if (!idValue) return MISSING_ID;
  const category = categoryKey(values[1]);
  if (typeof category === 'string') return category;
  const price = priceKey(values[2]);
  if (typeof price === 'string') return price;
  return new KeyedRow(document, idValue, id, category, price);
}

/** The key of a plan's category. */
export function keyOfCategory(category: string): Key {
  return stringKey(Buffer.from(category));
}

/** The key of a bookmark's id. Null when no row of this store can have that id. */
export function keyOfId(bookmark: Bookmark): Key | null {
  const values = fieldsOf(bookmark, ['_id']);
  const key = typeof values === 'string' ? values : idKey(values[0]);
  return typeof key === 'string' ? null : key;
}

/**
 * The keys of a bookmark's given fields, joined. Bookmarks come from clients, in cursors. Throws AppError
 * `invalid-cursor` when a field is missing or has a type that no row here has: the bookmark is from another store.
 */
export function keyOfBookmark(bookmark: Bookmark, fields: readonly (keyof typeof EXPECTED)[]): Key {
  const values = fieldsOf(bookmark, fields);
  if (typeof values === 'string') throw new AppError('invalid-cursor', `The cursor is not valid: ${values}.`);
  const keys = fields.map((field, index) => {
    const value = values[index];
    const key = value && tooLong(value) === null ? keyOfValue(value) : null;
    if (key) return key;
    throw new AppError(
      'invalid-cursor',
      `The ${field} in the cursor is of a type that no item of this store has; expected ${EXPECTED[field]}.`,
    );
  });
  return joinKeys(...keys);
}

const EXPECTED = {
  _id: `an ObjectId, a string of at most ${LONGEST_STRING} bytes, an integer or a UUID`,
  category: `a string of at most ${LONGEST_STRING} bytes`,
  price: 'a finite number',
} as const;

const MISSING_ID = `_id is missing, expected ${EXPECTED._id}`;

function idKey(value: Value | undefined): Key | string {
  if (!value) return MISSING_ID;
  const long = tooLong(value);
  if (long !== null) return `_id ${long}`;
  if (value.type === BSON_TYPE.double && !Number.isInteger(numberOf(value)))
    return `_id is a number but not an integer, expected ${EXPECTED._id}`;
  const key = value.type === BSON_TYPE.decimal128 ? null : keyOfValue(value);
  return key ?? `_id is of BSON type ${value.type}, expected ${EXPECTED._id}`;
}

function categoryKey(value: Value | undefined): Key | string {
  if (!value) return `category is missing, expected ${EXPECTED.category}`;
  if (value.type !== BSON_TYPE.string)
    return `category is of BSON type ${value.type}, expected ${EXPECTED.category}`;
  const long = tooLong(value);
  return long === null ? stringKey(value.bytes.subarray(4, -1)) : `category ${long}`;
}

function priceKey(value: Value | undefined): Key | string {
  if (!value) return `price is missing, expected ${EXPECTED.price}`;
  if (!NUMBERS.has(value.type)) return `price is of BSON type ${value.type}, expected ${EXPECTED.price}`;
  const price = value.type === BSON_TYPE.decimal128 ? String(new Decimal128(value.bytes)) : numberOf(value);
  const isFinite = typeof price === 'string' ? /\d/.test(price) : Number.isFinite(price);
  if (!isFinite) return `price is ${price}, expected ${EXPECTED.price}`;
  return keyOfValue(value) ?? 'price is not a number';
}

const NUMBERS: ReadonlySet<number> = new Set([
  BSON_TYPE.double,
  BSON_TYPE.int32,
  BSON_TYPE.int64,
  BSON_TYPE.decimal128,
]);

function tooLong({ type, bytes }: Value): string | null {
  const length = bytes.length - 5; // a BSON string: 4 bytes of length, the text, NUL
  if (type !== BSON_TYPE.string || length <= LONGEST_STRING) return null;
  return `has ${length} bytes, expected at most ${LONGEST_STRING}`;
}

import { Decimal128 } from '../bson.ts';
import { BSON_TYPE } from '../bson-types.ts';
import { fieldsOf } from '../fields.ts';
import { numberOf, type Value } from '../keys.ts';

/** The indexes of items. */
export const ITEM_INDEXES: readonly (readonly string[])[] = [['price'], ['category'], ['category', 'price']];

/** The longest id and category that items have, in bytes. */
const LONGEST_STRING = 256;

const EXPECTED = {
  _id: `an ObjectId, a string of at most ${LONGEST_STRING} bytes, an integer or a UUID`,
  category: `a string of at most ${LONGEST_STRING} bytes`,
  price: 'a finite number',
} as const;

const NUMBERS: ReadonlySet<number> = new Set([
  BSON_TYPE.double,
  BSON_TYPE.int32,
  BSON_TYPE.int64,
  BSON_TYPE.decimal128,
]);
const IDS: ReadonlySet<number> = new Set([
  BSON_TYPE.double,
  BSON_TYPE.int32,
  BSON_TYPE.int64,
  BSON_TYPE.string,
  BSON_TYPE.objectId,
]);
const UUID_SUBTYPE = 4;

/** Why a document is no item: what was expected and what was found. Null: it is one. */
export function itemRefusal(document: Uint8Array): string | null {
  const values = fieldsOf(document, ['_id', 'category', 'price']);
  if (typeof values === 'string') return values;
  const [id, category, price] = values;
  return idRefusal(id) ?? categoryRefusal(category) ?? priceRefusal(price);
}

function idRefusal(value: Value | undefined): string | null {
  if (!value) return `_id is missing, expected ${EXPECTED._id}`;
  const long = tooLong(value);
  if (long !== null) return `_id ${long}`;
  const { type, bytes } = value;
  if (type === BSON_TYPE.double && !Number.isInteger(numberOf(value)))
    return `_id is a number but not an integer, expected ${EXPECTED._id}`;
  const isUuid = type === BSON_TYPE.binary && bytes[4] === UUID_SUBTYPE && bytes.length === 21;
  return IDS.has(type) || isUuid ? null : `_id is of BSON type ${type}, expected ${EXPECTED._id}`;
}

function categoryRefusal(value: Value | undefined): string | null {
  if (!value) return `category is missing, expected ${EXPECTED.category}`;
  if (value.type !== BSON_TYPE.string)
    return `category is of BSON type ${value.type}, expected ${EXPECTED.category}`;
  const long = tooLong(value);
  return long === null ? null : `category ${long}`;
}

function priceRefusal(value: Value | undefined): string | null {
  if (!value) return `price is missing, expected ${EXPECTED.price}`;
  if (!NUMBERS.has(value.type)) return `price is of BSON type ${value.type}, expected ${EXPECTED.price}`;
  const price = value.type === BSON_TYPE.decimal128 ? String(new Decimal128(value.bytes)) : numberOf(value);
  const isFinite = typeof price === 'string' ? /\d/.test(price) : Number.isFinite(price);
  return isFinite ? null : `price is ${price}, expected ${EXPECTED.price}`;
}

function tooLong({ type, bytes }: Value): string | null {
  const length = bytes.length - 5; // a BSON string: 4 bytes of length, the text, NUL
  if (type !== BSON_TYPE.string || length <= LONGEST_STRING) return null;
  return `has ${length} bytes, expected at most ${LONGEST_STRING}`;
}

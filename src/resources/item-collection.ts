import { Decimal128 } from '../store/values/bson.ts';
import { BSON_RANK, BSON_TYPE, doubleAt, rankOf } from '../store/values/bson-types.ts';
import { valueOf } from '../store/values/fields.ts';
import { numberOf, type Value } from '../store/values/keys.ts';
import type { RowCheck } from '../store/values/row-check.ts';
import type { Declaration } from '../store/store.ts';

/** Each item has a category and a price. */
export const ITEM_CHECK: RowCheck = {
  names: [Buffer.from('category'), Buffer.from('price')],
  refusalOf: (row, [category, priced]) => {
    if (category?.type === BSON_TYPE.string && priced?.type === BSON_TYPE.double)
      // mostly
      if (Number.isFinite(doubleAt(row, priced.valueAt))) return null;
    if (category?.type !== BSON_TYPE.string)
      return `category is ${described(valueOf(row, category))}, expected a string`;
    const price = valueOf(row, priced);
    return isFinite(price) ? null : `price is ${described(price)}, expected a finite number`;
  },
};

/** An array as price would make indexes of MongoDB multikey, and no read could use them: hence the validator. */
export const ITEM_COLLECTION: Declaration = {
  name: 'items',
  collection: 'items',
  indexes: [['price'], ['category'], ['category', 'price']],
  create: {
    clustered: true,
    validator: {
      $jsonSchema: {
        bsonType: 'object',
        required: ['category', 'price'],
        properties: { category: { bsonType: 'string' }, price: { bsonType: 'number' } },
      },
      price: { $gt: -Infinity, $lt: Infinity },
    },
  },
  check: ITEM_CHECK,
};

function isFinite(value: Value | undefined): boolean {
  if (!isNumber(value)) return false;
  const isDecimal = value.type === BSON_TYPE.decimal128;
  return isDecimal ? /\d/.test(described(value)) : Number.isFinite(numberOf(value));
}

function isNumber(value: Value | undefined): value is Value {
  return value !== undefined && rankOf(value.type) === BSON_RANK.number;
}

function described(value: Value | undefined): string {
  if (!value) return 'missing';
  const { type, bytes } = value;
  if (isNumber(value)) return String(type === BSON_TYPE.decimal128 ? new Decimal128(bytes) : numberOf(value));
  const [name] = Object.entries(BSON_TYPE).find(([, one]) => one === type) ?? [];
  return `of BSON type ${name ?? type}`;
}

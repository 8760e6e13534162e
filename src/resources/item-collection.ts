import { Decimal128 } from '../store/bson.ts';
import { BSON_TYPE } from '../store/bson-types.ts';
import { fieldsOf } from '../store/fields.ts';
import { numberOf, type Value } from '../store/keys.ts';
import type { Declaration } from '../store/store.ts';

const NUMBERS: ReadonlySet<number> = new Set([
  BSON_TYPE.double,
  BSON_TYPE.int32,
  BSON_TYPE.int64,
  BSON_TYPE.decimal128,
]);

/**
 * The collection of items, with the indexes that each order of them needs. A price that is an array would make the indexes
 * of MongoDB multikey, and no read could use them: hence the validator.
 */
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
  refusalOf: (row) => {
    const fields = fieldsOf(row, ['category', 'price']);
    if (typeof fields === 'string') return fields;
    return categoryRefusal(fields[0]) ?? priceRefusal(fields[1]);
  },
};

function categoryRefusal(value: Value | undefined): string | null {
  if (!value) return 'category is missing, expected a string';
  return value.type === BSON_TYPE.string ? null : `category is ${typeName(value)}, expected a string`;
}

function priceRefusal(value: Value | undefined): string | null {
  if (!value) return 'price is missing, expected a finite number';
  const { type, bytes } = value;
  if (!NUMBERS.has(type)) return `price is ${typeName(value)}, expected a finite number`;
  const price = type === BSON_TYPE.decimal128 ? String(new Decimal128(bytes)) : numberOf(value);
  const isFinite = typeof price === 'string' ? /\d/.test(price) : Number.isFinite(price);
  return isFinite ? null : `price is ${price}, expected a finite number`;
}

function typeName({ type }: Value): string {
  const [name] = Object.entries(BSON_TYPE).find(([, one]) => one === type) ?? [];
  return `of BSON type ${name ?? type}`;
}

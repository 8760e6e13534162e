import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { BSON, Decimal128, ObjectId, type Document } from '../src/store/values/bson.ts';

/** The indexes of the orders, as `sluice import --index` takes them. */
export const ORDER_INDEXES = ['status,createdAt', 'customer.country,createdAt', 'total', 'customer.id'];

const STATUSES = ['new', 'paid', 'sent', 'delivered', 'returned'];
const COUNTRIES = ['DE', 'FR', 'NL', 'IT', 'ES', 'PL', 'SE', 'US'];
/** 2023-11-14T22:13:20Z, the time of the first order. Each further order is one second later. */
const FIRST_SECOND = 1_700_000_000;
const MOST_CENTS = 500_000;
const LINES_PER_WRITE = 1_000;

/** The id of an order. Ids ascend. */
export function orderId(index: number): ObjectId {
  return new ObjectId((FIRST_SECOND + index).toString(16).padEnd(24, '0'));
}

/**
 * Order `index`: a nested customer, dates, exact amounts, and an array of documents, about 400 bytes of BSON. Always the
 * same but for `note`. A double shows all digits of an amount.
 */
export function orderOf(index: number, note: string): Document {
  const amount = (factor: number) =>
    Decimal128.fromString(String((((index * factor) % MOST_CENTS) + 1) / 100));
  return {
    _id: orderId(index),
    status: STATUSES[(index * 7) % STATUSES.length],
    customer: {
      id: `c${(index * 7919) % 50_021}`,
      name: `Customer ${(index * 31) % 9_973}`,
      country: COUNTRIES[(index * 13 + (index >> 3)) % COUNTRIES.length],
    },
    createdAt: new Date((FIRST_SECOND + index) * 1_000),
    total: amount(104_729),
    lines: Array.from({ length: 1 + (index % 2) }, (_, n) => ({
      sku: `s${(index * 17 + n) % 4_001}`,
      quantity: 1 + ((index + n) % 5),
      price: amount(15_485 + n),
    })),
    note,
  };
}

/** Writes the first `count` orders as lines of Extended JSON. */
export async function writeOrders(file: string, count: number): Promise<void> {
  const out = createWriteStream(file);
  for (let index = 0; index < count; index += LINES_PER_WRITE) {
    const some = Array.from({ length: Math.min(LINES_PER_WRITE, count - index) }, (_, n) =>
      BSON.EJSON.stringify(orderOf(index + n, `n${index + n}`)),
    );
    if (!out.write(`${some.join('\n')}\n`)) await once(out, 'drain');
  }
  out.end();
  await once(out, 'finish');
}

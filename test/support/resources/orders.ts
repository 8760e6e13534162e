import type { TestContext } from 'node:test';
import { ObjectId, type Document } from 'mongodb';
import { filled } from './resources.ts';
import type { Skipped, StoreName } from '../process/server.ts';

const STATUSES = ['new', 'paid', 'größe'];

/** The indexes that orders have, without the key at their end. */
export const ORDER_INDEXES = [['status', 'createdAt'], ['total']];

/** `count` orders of about 260 bytes that hardly compress, with ids of MongoDB, dates and nested fields. */
export function ordersOf(count: number): Document[] {
  return Array.from({ length: count }, (_, n) => ({
    _id: new ObjectId(n.toString(16).padStart(24, '0')),
    status: STATUSES[n % 3],
    createdAt: new Date(Date.UTC(2026, 0, 1) + (n % 50) * 86_400_000),
    total: (n * 7919) % 1009,
    customer: { country: n % 2 === 0 ? 'NL' : 'DE', card: `secret${n}` },
    note: `=${Math.sin(n)}${Math.cos(n)}${Math.tan(n)}${Math.sqrt(n)}, "quoted"\r\n`,
    ref: n % 2 === 0 ? 42 : '42',
  }));
}

/** Settings of servers that serve these rows as the resource `orders`. Null, and the test is skipped, without a mongod. */
export function withOrders<S extends StoreName>(
  t: TestContext,
  store: S,
  rows: readonly Document[],
): Promise<Record<string, string> | Skipped<S>> {
  return filled(t, store, [{ name: 'orders', rows, indexes: ORDER_INDEXES }]);
}

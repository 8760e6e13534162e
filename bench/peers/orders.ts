/** The orders at the peers: their finds, by the indexes that they have, and the form of an order. */
import type {
  ChangeStreamDocument,
  Decimal128,
  Document,
  Filter,
  FindCursor,
  FindOptions,
  ObjectId,
  Sort,
} from 'mongodb';
import build from 'fast-json-stringify';
import { database } from './items.ts';

export interface StoredOrder extends Document {
  _id: ObjectId;
  total: Decimal128;
  lines: readonly { readonly sku: string; readonly quantity: number; readonly price: Decimal128 }[];
}

/** The part of sluice's parameters that the scenarios use. */
export interface OrderQuery {
  readonly status?: string;
  readonly 'customer.country'?: string;
  readonly sort?: string;
  readonly limit?: string | number;
}

const orders = database.collection<StoredOrder>('orders');

const ORDERS: Readonly<Record<string, Sort>> = {
  createdAt_asc: { createdAt: 1, _id: 1 },
  createdAt_desc: { createdAt: -1, _id: -1 },
};

const text = { type: 'string' } as const;
const number = { type: 'number' } as const;

export const ORDER_SCHEMA = {
  type: 'object',
  properties: {
    id: text,
    status: text,
    customer: { type: 'object', properties: { id: text, name: text, country: text } },
    createdAt: { type: 'string', format: 'date-time' },
    total: number,
    lines: {
      type: 'array',
      items: { type: 'object', properties: { sku: text, quantity: { type: 'integer' }, price: number } },
    },
    note: text,
  },
} as const;

const json = build(ORDER_SCHEMA);

/** Finds the orders of a query, by id or by the time of their making. */
export function findOrders(query: OrderQuery, options: FindOptions = {}): FindCursor<StoredOrder> {
  const { status, 'customer.country': country } = query;
  const filter: Filter<StoredOrder> = {
    ...(status !== undefined && { status }),
    ...(country !== undefined && { 'customer.country': country }),
  };
  return orders
    .find(filter, options)
    .sort(ORDERS[query.sort ?? ''] ?? { _id: 1 })
    .limit(Number(query.limit ?? 0));
}

/** An order as clients see it. A double shows all digits of its amounts. */
export function shownOrder({ _id, ...rest }: StoredOrder): Record<string, unknown> {
  return {
    id: _id.toHexString(),
    ...rest,
    total: Number(rest.total),
    lines: rest.lines.map((line) => ({ ...line, price: Number(line.price) })),
  };
}

export function orderLine(order: StoredOrder): string {
  return `${json(shownOrder(order))}\n`;
}

/** The cursor of the next page: the keys of the last row. */
export function cursorAfterOrder(last: StoredOrder | undefined): string | null {
  if (!last) return null;
  const key = { id: last._id.toHexString(), createdAt: last.createdAt as Date };
  return Buffer.from(JSON.stringify(key)).toString('base64url');
}

/** The changes of the orders from now on, in the way of the driver's manual: each with its present document. */
export async function* orderChanges(): AsyncGenerator<string> {
  const changes = orders.watch([], { fullDocument: 'updateLookup' });
  try {
    await changes.tryNext(); // opens the stream
    yield '{"checkpoint":{}}\n';
    for await (const change of changes as AsyncIterable<ChangeStreamDocument<StoredOrder>>) {
      if (change.operationType === 'delete')
        yield `${JSON.stringify({ removed: { id: change.documentKey._id.toHexString() } })}\n`;
      else if (change.operationType === 'update' && change.fullDocument) yield orderLine(change.fullDocument);
    }
  } finally {
    await changes.close();
  }
}

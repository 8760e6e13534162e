/**
 * What the peers have in common, so that each shows only how it serves: the collection, how a query becomes a find that an
 * index serves, and an item's shape. They are compared by the bytes of their answers.
 */
import type { AddressInfo, Server } from 'node:net';
import {
  MongoClient,
  ObjectId,
  type Document,
  type Filter,
  type FindCursor,
  type FindOptions,
} from 'mongodb';

export interface StoredItem extends Document {
  _id: ObjectId;
  price: number;
}

/** The part of sluice's parameters that scenarios use. */
export interface ItemQuery {
  readonly sort?: string;
  readonly category?: string;
  readonly limit?: string | number;
  readonly offset?: string | number;
  readonly cursor?: string;
  readonly format?: string;
}

const DEFAULT_LIMIT = 50;

const client = await new MongoClient(process.env.MONGODB_URI ?? '').connect();
export const database = client.db();
const items = database.collection<StoredItem>('items');

const date = { type: 'string', format: 'date-time' } as const;
const text = { type: 'string' } as const;

/** For fast-json-stringify. */
export const ITEM_SCHEMA = {
  type: 'object',
  properties: {
    id: text,
    name: text,
    category: text,
    price: { type: 'number' },
    description: text,
    stock: { type: 'integer' },
    createdAt: date,
    updatedAt: date,
  },
} as const;

/** An item as clients see it. */
export function shown({ _id, ...rest }: StoredItem): Record<string, unknown> {
  return { id: _id.toHexString(), ...rest };
}

/** All that a stream's query asks for; `limit` only when given. */
export function findAll(query: ItemQuery, options: FindOptions = {}): FindCursor<StoredItem> {
  const byPrice = query.sort === 'price_asc';
  return items
    .find({ ...inCategory(query), ...behindCursor(query) }, options)
    .sort(byPrice ? { price: 1, _id: 1 } : { _id: 1 })
    .skip(Number(query.offset ?? 0))
    .limit(Number(query.limit ?? 0));
}

/** A page's rows. */
export function findPage(query: ItemQuery, options: FindOptions = {}): FindCursor<StoredItem> {
  return findAll({ ...query, limit: query.limit ?? DEFAULT_LIMIT }, options);
}

/** Where the next page begins, as keyset pages are usually written: the last row's keys in base64url. */
export function cursorAfter(last: Pick<StoredItem, '_id' | 'price'> | undefined): string | null {
  if (!last) return null;
  return Buffer.from(JSON.stringify({ id: last._id.toHexString(), price: last.price })).toString('base64url');
}

function behindCursor({ sort, cursor }: ItemQuery): Filter<StoredItem> {
  if (cursor === undefined) return {};
  const key = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as { id: string; price: number };
  const _id = { $gt: new ObjectId(key.id) };
  if (sort !== 'price_asc') return { _id };
  return { $or: [{ price: { $gt: key.price } }, { price: key.price, _id }] };
}

function inCategory({ category }: ItemQuery): Filter<StoredItem> {
  return category === undefined ? {} : { category };
}

/** Tells the bench where to ask, in sluice's own words. */
export function announce(server: Server): void {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ msg: 'listening', url: `http://127.0.0.1:${port}` })}\n`);
}

/**
 * The common parts of the peers, so that each file shows only how it serves: the collection, the translation
 * of a query to a find with an index, and the form of an item. The peers are compared by the bytes of their
 * answers.
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

/** The part of sluice's parameters that the scenarios use. */
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

/** The schema for fast-json-stringify. */
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

/** Finds everything that a stream's query asks for. `limit` applies only when it is given. */
export function findAll(query: ItemQuery, options: FindOptions = {}): FindCursor<StoredItem> {
  const byPrice = query.sort === 'price_asc';
  return items
    .find({ ...inCategory(query), ...behindCursor(query) }, options)
    .sort(byPrice ? { price: 1, _id: 1 } : { _id: 1 })
    .skip(Number(query.offset ?? 0))
    .limit(Number(query.limit ?? 0));
}

/** Finds the rows of a page. */
export function findPage(query: ItemQuery, options: FindOptions = {}): FindCursor<StoredItem> {
  return findAll({ ...query, limit: query.limit ?? DEFAULT_LIMIT }, options);
}

/** The cursor of the next page, in the usual form of keyset pages: the keys of the last row in base64url. */
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

/** Announces the URL to the bench, in the form of sluice's own log line. */
export function announce(server: Server): void {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ msg: 'listening', url: `http://127.0.0.1:${port}` })}\n`);
}

import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import {
  cursorAfterOrder,
  findOrders,
  ORDER_SCHEMA,
  orderChanges,
  orderLine,
  shownOrder,
  type OrderQuery,
} from './orders.ts';

const BATCH_ROWS = 1000;
const NDJSON = 'application/x-ndjson';

/** The orders at Fastify: pages, streams with batches serialized by hand, and the driver's change stream. */
// eslint-disable-next-line @typescript-eslint/require-await -- the form of a plugin
export async function orderRoutes(app: FastifyInstance): Promise<void> {
  app.get<{ Querystring: OrderQuery }>('/orders/stream', ({ query }, reply) =>
    reply.type(NDJSON).send(Readable.from(lines(query), { objectMode: false })),
  );

  app.get<{ Querystring: OrderQuery }>(
    '/orders',
    { schema: { response: { 200: pageSchema() } } },
    async ({ query }) => {
      const rows = await findOrders(query).toArray();
      return { data: rows.map(shownOrder), page: { nextCursor: cursorAfterOrder(rows.at(-1)) } };
    },
  );

  app.get<{ Querystring: { follow?: string } }>('/orders/changes', ({ query }, reply) =>
    query.follow === 'true'
      ? reply.type(NDJSON).send(Readable.from(orderChanges(), { objectMode: false }))
      : reply.type(NDJSON).send('{"end":{"cursor":"now"}}\n'),
  );
}

async function* lines(query: OrderQuery): AsyncGenerator<string> {
  const cursor = findOrders(query, { batchSize: BATCH_ROWS });
  while (await cursor.hasNext()) yield cursor.readBufferedDocuments().map(orderLine).join('');
}

function pageSchema() {
  const page = { type: 'object', properties: { nextCursor: { type: 'string', nullable: true } } };
  return { type: 'object', properties: { data: { type: 'array', items: ORDER_SCHEMA }, page } };
}

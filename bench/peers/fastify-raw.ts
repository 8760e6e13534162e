/**
 * The strongest peer with Fastify and the driver. With `raw: true` the driver returns BSON bytes, and a
 * transcoder in JavaScript turns them into JSON bytes. No row becomes an object.
 */
import { Readable } from 'node:stream';
import Fastify, { type FastifyReply } from 'fastify';
import { JsonBytes } from './bson-json.ts';
import { cursorAfterOrder, findOrders, type OrderQuery, type StoredOrder } from './orders.ts';
import { announce, cursorAfter, findAll, findPage, type ItemQuery, type StoredItem } from './items.ts';
import { BSON, type FindCursor } from 'mongodb';

const RAW = { batchSize: 1000, raw: true };

const app = Fastify();

app.get<{ Querystring: ItemQuery }>('/items/stream', ({ query }, reply) =>
  reply.type('application/x-ndjson').send(Readable.from(lines(findAll(query, RAW)), { objectMode: false })),
);

app.get<{ Querystring: OrderQuery }>('/orders/stream', ({ query }, reply) =>
  reply
    .type('application/x-ndjson')
    .send(Readable.from(lines(findOrders(query, RAW)), { objectMode: false })),
);

app.get<{ Querystring: ItemQuery }>('/items', async ({ query }, reply) => {
  const rows = (await findPage(query, { raw: true }).toArray()) as unknown as Buffer[];
  const last = rows.at(-1);
  return sendPage(reply, rows, cursorAfter(last && (BSON.deserialize(last) as StoredItem)));
});

app.get<{ Querystring: OrderQuery }>('/orders', async ({ query }, reply) => {
  const rows = (await findOrders(query, { raw: true }).toArray()) as unknown as Buffer[];
  const last = rows.at(-1);
  return sendPage(reply, rows, cursorAfterOrder(last && (BSON.deserialize(last) as StoredOrder)));
});

function sendPage(reply: FastifyReply, rows: readonly Buffer[], cursor: string | null) {
  const out = new JsonBytes(rows);
  out.text('{"data":[');
  for (const [index, row] of rows.entries()) {
    if (index > 0) out.text(',');
    out.item(row);
  }
  out.text(`],"page":{"nextCursor":${JSON.stringify(cursor)}}}`);
  return reply.type('application/json; charset=utf-8').send(out.bytes());
}

async function* lines(cursor: Pick<FindCursor, 'hasNext' | 'readBufferedDocuments'>): AsyncGenerator<Buffer> {
  while (await cursor.hasNext()) {
    const rows = cursor.readBufferedDocuments() as unknown as Buffer[];
    const out = new JsonBytes(rows);
    for (const row of rows) {
      out.item(row);
      out.text('\n');
    }
    yield out.bytes();
  }
}

await app.listen({ port: 0, host: '127.0.0.1' });
announce(app.server);

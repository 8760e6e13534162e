/**
 * The strongest peer with Fastify and the driver. With `raw: true` the driver returns BSON bytes, and a
 * transcoder in JavaScript turns them into JSON bytes. No row becomes an object.
 */
import { Readable } from 'node:stream';
import Fastify from 'fastify';
import { JsonBytes } from './bson-json.ts';
import { announce, cursorAfter, findAll, findPage, type ItemQuery, type StoredItem } from './items.ts';
import { BSON } from 'mongodb';

const BATCH_ROWS = 1000;

const app = Fastify();

app.get<{ Querystring: ItemQuery }>('/items/stream', ({ query }, reply) =>
  reply.type('application/x-ndjson').send(Readable.from(lines(query), { objectMode: false })),
);

app.get<{ Querystring: ItemQuery }>('/items', async ({ query }, reply) => {
  const rows = (await findPage(query, { raw: true }).toArray()) as unknown as Buffer[];
  const last = rows.at(-1);
  const cursor = cursorAfter(last && (BSON.deserialize(last) as StoredItem));
  const out = new JsonBytes(rows);
  out.text('{"data":[');
  for (const [index, row] of rows.entries()) {
    if (index > 0) out.text(',');
    out.item(row);
  }
  out.text(`],"page":{"nextCursor":${JSON.stringify(cursor)}}}`);
  return reply.type('application/json; charset=utf-8').send(out.bytes());
});

async function* lines(query: ItemQuery): AsyncGenerator<Buffer> {
  const cursor = findAll(query, { batchSize: BATCH_ROWS, raw: true });
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

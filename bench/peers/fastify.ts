/**
 * The first peer: Fastify, the MongoDB driver and fast-json-stringify, as a developer who cares about speed
 * would write it. It serializes cursor batches of 1,000 by hand, and uses @fastify/compress and a precompiled
 * schema.
 *
 * COMPRESS_QUALITY: the quality of br and the level of gzip, instead of the plugin's defaults. RATE_LIMIT:
 * requests per minute.
 */
import { Readable } from 'node:stream';
import { constants } from 'node:zlib';
import compress, { type FastifyCompressOptions } from '@fastify/compress';
import rateLimit from '@fastify/rate-limit';
import build from 'fast-json-stringify';
import Fastify from 'fastify';
import { orderRoutes } from './fastify-orders.ts';
import { userRoutes } from './fastify-users.ts';
import { announce, cursorAfter, findAll, findPage, ITEM_SCHEMA, shown, type ItemQuery } from './items.ts';

const BATCH_ROWS = 1000;

const line = build(ITEM_SCHEMA);

const app = Fastify();
await app.register(compress, compression(process.env.COMPRESS_QUALITY));
if (process.env.RATE_LIMIT !== undefined)
  await app.register(rateLimit, { max: Number(process.env.RATE_LIMIT), timeWindow: '1 minute' });
await app.register(userRoutes);
await app.register(orderRoutes);

app.get<{ Querystring: ItemQuery }>('/items/stream', (request, reply) => {
  const { query } = request;
  const body = query.format === 'json' ? array(query) : lines(query);
  return reply
    .type(query.format === 'json' ? 'application/json' : 'application/x-ndjson')
    .send(Readable.from(body, { objectMode: false }));
});

app.get<{ Querystring: ItemQuery }>(
  '/items',
  { schema: { response: { 200: pageSchema() } } },
  async ({ query }) => {
    const rows = await findPage(query).toArray();
    return { data: rows.map(shown), page: { nextCursor: cursorAfter(rows.at(-1)) } };
  },
);

async function* lines(query: ItemQuery): AsyncGenerator<string> {
  const cursor = findAll(query, { batchSize: BATCH_ROWS });
  while (await cursor.hasNext()) {
    let text = '';
    for (const document of cursor.readBufferedDocuments()) text += `${line(shown(document))}\n`;
    yield text;
  }
}

async function* array(query: ItemQuery): AsyncGenerator<string> {
  const cursor = findAll(query, { batchSize: BATCH_ROWS });
  let separator = '[';
  while (await cursor.hasNext()) {
    let text = '';
    for (const document of cursor.readBufferedDocuments()) {
      text += separator + line(shown(document));
      separator = ',';
    }
    yield text;
  }
  yield separator === '[' ? '[]\n' : ']\n';
}

function pageSchema() {
  const page = { type: 'object', properties: { nextCursor: { type: 'string', nullable: true } } };
  return { type: 'object', properties: { data: { type: 'array', items: ITEM_SCHEMA }, page } };
}

/** The plugin does not know by itself that NDJSON is text. */
function compression(quality: string | undefined): FastifyCompressOptions {
  const all = { global: true, customTypes: /json|text/ };
  if (quality === undefined) return all;
  return {
    ...all,
    brotliOptions: { params: { [constants.BROTLI_PARAM_QUALITY]: Number(quality) } },
    zlibOptions: { level: Number(quality) },
  };
}

await app.listen({ port: 0, host: '127.0.0.1' });
announce(app.server);

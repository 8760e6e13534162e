/**
 * A peer with Fastify and `cursor.stream()`, as most guides show it. Backpressure is that of Node's streams.
 */
import build from 'fast-json-stringify';
import Fastify from 'fastify';
import { announce, findAll, ITEM_SCHEMA, shown, type ItemQuery, type StoredItem } from './items.ts';

const line = build(ITEM_SCHEMA);
const toLine = (document: StoredItem): string => `${line(shown(document))}\n`;

const app = Fastify();
app.get<{ Querystring: ItemQuery }>('/items/stream', ({ query }, reply) =>
  reply.type('application/x-ndjson').send(findAll(query).map(toLine).stream()),
);

await app.listen({ port: 0, host: '127.0.0.1' });
announce(app.server);

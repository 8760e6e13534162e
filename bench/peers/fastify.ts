/**
 * The peer sluice is measured against: Fastify, the MongoDB driver and fast-json-stringify, as somebody who cares about
 * speed would write it: cursor batches of 1,000 serialized by hand, a precompiled schema. Same bytes out as sluice.
 * MONGODB_URI=... PORT=... node --import tsx bench/peers/fastify.ts
 */
import { Readable } from 'node:stream';
import compress from '@fastify/compress';
import build from 'fast-json-stringify';
import Fastify from 'fastify';
import { MongoClient, type ObjectId } from 'mongodb';

interface StoredItem {
  _id: ObjectId;
  [field: string]: unknown;
}

const date = { type: 'string', format: 'date-time' };
const text = { type: 'string' };
const schema = {
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

const client = await new MongoClient(process.env.MONGODB_URI ?? '').connect();
const items = client.db().collection<StoredItem>('items');
const line = build(schema);
const shown = ({ _id, ...rest }: StoredItem) => ({ id: _id.toHexString(), ...rest });

const app = Fastify();
await app.register(compress, { global: true });

app.get<{ Querystring: { sort?: string } }>('/items/stream', (request, reply) => {
  const byPrice = request.query.sort === 'price_asc';
  async function* rows() {
    const cursor = items.find({}, { batchSize: 1000 }).sort(byPrice ? { price: 1, _id: 1 } : { _id: 1 });
    while (await cursor.hasNext()) {
      let lines = '';
      for (const document of cursor.readBufferedDocuments()) lines += `${line(shown(document))}\n`;
      yield lines;
    }
  }
  return reply.type('application/x-ndjson').send(Readable.from(rows(), { objectMode: false }));
});

app.get(
  '/items',
  {
    schema: { response: { 200: { type: 'object', properties: { data: { type: 'array', items: schema } } } } },
  },
  async () => {
    const page = await items.find().sort({ price: 1, _id: 1 }).limit(100).toArray();
    return { data: page.map(shown) };
  },
);

await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
process.stdout.write('listening\n');

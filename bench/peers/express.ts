/**
 * A peer with Express and `toArray()`: pages as most APIs have them, and a whole set that is built before its
 * first byte is sent.
 */
import express from 'express';
import { announce, cursorAfter, findAll, findPage, shown } from './items.ts';

const app = express();

app.get('/items/stream', async (request, response) => {
  const rows = await findAll(request.query).toArray();
  response
    .type('application/x-ndjson')
    .send(rows.map((document) => `${JSON.stringify(shown(document))}\n`).join(''));
});

app.get('/items', async (request, response) => {
  const rows = await findPage(request.query).toArray();
  response.json({ data: rows.map(shown), page: { nextCursor: cursorAfter(rows.at(-1)) } });
});

const server = app.listen(0, '127.0.0.1', (error?: Error) => {
  if (error) throw error;
  announce(server);
});

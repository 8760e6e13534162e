/**
 * A peer without a framework: node:http, `for await` over the cursor, JSON.stringify, and a wait for 'drain'.
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { announce, cursorAfter, findAll, findPage, shown, type ItemQuery } from './items.ts';

async function stream(query: ItemQuery, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  for await (const document of findAll(query)) {
    if (!response.write(`${JSON.stringify(shown(document))}\n`)) await once(response, 'drain');
  }
  response.end();
}

async function page(query: ItemQuery, response: ServerResponse): Promise<void> {
  const rows = await findPage(query).toArray();
  const body = JSON.stringify({ data: rows.map(shown), page: { nextCursor: cursorAfter(rows.at(-1)) } });
  response.writeHead(200, { 'content-type': 'application/json' }).end(body);
}

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const query: ItemQuery = Object.fromEntries(url.searchParams);
  const answer = url.pathname === '/items/stream' ? stream : page;
  answer(query, response).catch((error: unknown) => {
    response.destroy(error instanceof Error ? error : new Error(String(error)));
  });
});
server.listen(0, '127.0.0.1', () => announce(server));

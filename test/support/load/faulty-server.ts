import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { crc32 } from '../../../src/pipeline/crc32.ts';
import { listening } from '../ports.ts';

/** What the server does wrong. All is right by default. */
export interface FaultsOnPurpose {
  /** The rows of a stream as they are sent, when these are not those that its checkpoint proves. */
  readonly sent?: (rows: string[]) => string[];
  /** The rows of a page. */
  readonly page?: () => object[];
  /** Pages are answered when this has resolved. */
  readonly before?: () => Promise<unknown>;
  /** The status of /resources. */
  readonly status?: number;
  /** The content type of the stream. */
  readonly type?: string;
  /** The connection is cut after the rows, without an end. */
  readonly cut?: boolean;
}

const ROWS = 20;

export interface FaultyServer {
  readonly url: string;
  /** The server is gone: it cuts all connections, and takes no more. */
  readonly leave: () => void;
}

/** A server that looks like sluice, with faults on purpose. */
export async function faultyServer(t: TestContext, faults: FaultsOnPurpose = {}): Promise<FaultyServer> {
  const server = createServer((request, response) => void answer(request, response, faults));
  const port = await listening(t, server);
  const leave = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, leave };
}

async function answer(
  { url = '' }: IncomingMessage,
  response: ServerResponse,
  faults: FaultsOnPurpose,
): Promise<void> {
  const json = (status: number, body: object) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  const [path = ''] = url.split('?');
  if (path === '/readyz') json(200, { status: 'ready', reasons: [] });
  else if (path === '/resources' && faults.status !== undefined)
    json(faults.status, { detail: 'The key is unknown.' });
  else if (path === '/resources') json(200, LISTED);
  else if (path === '/items/stream') stream(response, faults);
  else if (path === '/items') {
    await faults.before?.();
    const data = faults.page?.() ?? ids().map((id) => ({ id }));
    json(200, { data, page: { limit: 50, hasMore: false, nextCursor: null } });
  } else json(404, {});
}

const LISTED = {
  resources: [
    {
      name: 'items',
      rows: ROWS,
      queries: [],
      formats: ['ndjson'],
      links: { page: '/items', stream: '/items/stream' },
    },
  ],
};

function ids(): string[] {
  return Array.from({ length: ROWS }, (_, i) => `id-${i}`);
}

function stream(response: ServerResponse, faults: FaultsOnPurpose): void {
  const { sent = (rows: readonly string[]) => rows, cut = false, type = 'application/x-ndjson' } = faults;
  const rows = ids().map((id) => `${JSON.stringify({ id })}\n`);
  const bytes = Buffer.from(rows.join(''));
  const tally = {
    cursor: 'end',
    rows: ROWS,
    bytes: bytes.length,
    crc32: crc32(bytes).toString(16).padStart(8, '0'),
  };
  response.writeHead(200, { 'content-type': type });
  response.write(sent(rows).join(''));
  if (cut) response.destroy();
  else response.end(`${JSON.stringify({ end: tally })}\n`);
}

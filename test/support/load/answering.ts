import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

/** A server that answers with exactly these bytes and closes the connection. */
export async function answering(t: TestContext, bytes: string | Buffer): Promise<string> {
  const server = createServer((socket) => socket.once('data', () => socket.end(bytes))).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

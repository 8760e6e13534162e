import { createServer } from 'node:net';
import type { TestContext } from 'node:test';
import { listening } from '../ports.ts';

/** A server that answers with exactly these bytes and closes the connection. */
export async function answering(t: TestContext, bytes: string | Buffer): Promise<string> {
  const server = createServer((socket) => socket.once('data', () => socket.end(bytes)));
  return `http://127.0.0.1:${await listening(t, server)}/`;
}

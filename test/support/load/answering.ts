import { createServer } from 'node:net';
import type { TestContext } from 'node:test';
import { listening } from '../ports.ts';

/** Two rows, and an answer that has them in chunks, or with a length. */
export const BODY = '{"id":"a"}\n{"id":"b"}\n';
export const OK = 'HTTP/1.1 200 OK\r\n';
export const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\na\r\n{"id":"a"}\r\nC\r\n\n{"id":"b"}\n\r\n0\r\n\r\n`;
export const COUNTED = `${OK}Content-Length: ${BODY.length}\r\n\r\n${BODY}`;

/** A server that answers with exactly these bytes and closes the connection. */
export async function answering(t: TestContext, bytes: string | Buffer): Promise<string> {
  const server = createServer((socket) => socket.once('data', () => socket.end(bytes)));
  return `http://127.0.0.1:${await listening(t, server)}/`;
}

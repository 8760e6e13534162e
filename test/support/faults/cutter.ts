import { get, type IncomingMessage } from 'node:http';
import { connect, createServer } from 'node:net';
import type { TestContext } from 'node:test';
import { brotliDecompressSync, constants, gunzipSync } from 'node:zlib';
import { listening } from '../ports.ts';

/** A proxy in front of a server. It cuts each connection after a given number of bytes of the answer. */
export interface Cutter {
  readonly url: string;
  /** Returns the number of answer bytes, including heads, that the next connection may pass on. */
  nextAfter: () => number;
}

export async function startCutter(t: TestContext, url: string): Promise<Cutter> {
  const { hostname, port } = new URL(url);
  const cutter = { url: '', nextAfter: () => Infinity };
  const proxy = createServer((client) => {
    let left = cutter.nextAfter();
    const server = connect(Number(port), hostname);
    const close = () => {
      client.destroy();
      server.destroy();
    };
    client.on('error', close).on('close', close).pipe(server);
    server.on('error', close).on('close', close);
    server.on('data', (bytes) => {
      client.write(bytes.subarray(0, Math.max(0, left)));
      left -= bytes.length;
      if (left <= 0) client.end(close);
    });
  });
  cutter.url = `http://127.0.0.1:${await listening(t, proxy)}`;
  return cutter;
}

/**
 * The received part of an answer, decoded, and whether the answer ended cleanly. It uses node:http, because
 * fetch loses the contents of its decoder when a connection is cut.
 */
export async function fetchUntilCut(
  url: string,
  headers: Record<string, string> = {},
): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> {
  const pieces: Buffer[] = [];
  const request = get(url, { agent: false, headers });
  const response = await new Promise<IncomingMessage | null>((resolve) => {
    request
      .on('error', () => resolve(null))
      .on('response', (message: IncomingMessage) => {
        // Events are used because an iterator drops buffered data when the connection is cut.
        message.on('data', (piece: Buffer) => pieces.push(piece));
        message.on('error', () => undefined).on('close', () => resolve(message));
      });
  });
  const bytes = decoded(Buffer.concat(pieces), response?.headers['content-encoding']);
  if (response && response.statusCode !== 200)
    throw new Error(`status ${response.statusCode}: ${bytes.toString()}`);
  return { bytes, whole: response?.complete ?? false };
}

function decoded(bytes: Buffer, coding: string | undefined): Buffer {
  const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = constants;
  if (coding === 'gzip') return gunzipSync(bytes, { finishFlush: Z_SYNC_FLUSH });
  return coding === 'br' ? brotliDecompressSync(bytes, { finishFlush: BROTLI_OPERATION_FLUSH }) : bytes;
}

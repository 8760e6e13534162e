import { createHash } from 'node:crypto';
import { JsonRows } from '../src/load/forms/json.ts';
import { rowReading } from '../src/load/forms/form.ts';
import type { RowReading } from '../src/load/forms/reading.ts';
import type { Head } from '../src/load/http/answer-reader.ts';
import { Connection } from '../src/load/http/connection.ts';
import { exchange } from '../src/load/http/get.ts';
import { Requests } from '../src/load/http/requests.ts';
import { StreamContent } from '../src/load/http/stream-content.ts';

export type Encoding = 'identity' | 'gzip' | 'br';

/** The result of reading a stream. */
export interface StreamReading {
  /** The bytes of the body as received, compressed or not. */
  readonly bytes: number;
  readonly seconds: number;
  readonly firstByteSeconds: number;
}

/**
 * The content of a stream, from its decoded body. Two candidates gave the same content when all of it is
 * equal.
 */
export interface Verified {
  readonly rows: number;
  readonly bytes: number;
  readonly md5: string;
}

/** The reason to cut a connection of which enough was read. */
const ENOUGH = new Error('enough was read');

function requestOf(to: URL, encoding: Encoding): string {
  return new Requests(to, null).get(to.pathname + to.search, { accept: '*/*', coding: encoding });
}

/**
 * Reads a stream as fast as it comes. Rejects on any status but 200, on another coding than requested, and on
 * a cut. `onPiece` receives the body. A piece is valid until `onPiece` returns. Once `isEnough`, the connection is cut.
 */
export async function readStream(
  url: string,
  encoding: Encoding,
  onPiece: (piece: Uint8Array) => void = () => undefined,
  isEnough: (bytes: number, piece: Uint8Array) => boolean = () => false,
): Promise<StreamReading> {
  const to = new URL(url);
  const started = performance.now();
  const elapsed = () => (performance.now() - started) / 1000;
  const connection = new Connection(to);
  let bytes = 0;
  let firstByteSeconds = 0;
  const onBody = (piece: Buffer): void => {
    if (bytes === 0) firstByteSeconds = elapsed();
    bytes += piece.length;
    onPiece(piece);
    if (isEnough(bytes, piece)) throw ENOUGH;
  };
  try {
    await exchange(connection, requestOf(to, encoding), {
      onHead: (head) => assertHead(url, head, encoding),
      onBody,
    });
  } catch (error) {
    if (error !== ENOUGH)
      throw new Error(`${url} was cut after ${bytes} bytes: ${String(error)}`, { cause: error });
  } finally {
    connection.close();
  }
  return { bytes, seconds: elapsed(), firstByteSeconds };
}

function assertHead(url: string, head: Head, encoding: Encoding): void {
  if (head.status !== 200) throw new Error(`${url} answered ${head.status}`);
  const came = head.header('content-encoding') ?? 'identity';
  if (came !== encoding) throw new Error(`${url} was asked for ${encoding} and came as ${came}`);
}

/** Reads a stream of JSON rows to its end and resolves with its content. */
export function verifyStream(url: string, encoding: Encoding): Promise<Verified> {
  return verify(url, encoding, new JsonRows());
}

/** Reads a stream of Arrow to its end marker and resolves with its content. */
export function verifyArrow(url: string): Promise<Verified> {
  return verify(url, 'identity', rowReading('arrow').reading);
}

async function verify(url: string, encoding: Encoding, reading: RowReading): Promise<Verified> {
  const nothing = () => undefined;
  const to = new URL(url);
  const events = { bytes: nothing, firstByte: nothing, gap: nothing };
  const content = new StreamContent(to, requestOf(to, encoding), events);
  const hash = createHash('md5');
  let rows = 0;
  let bytes = 0;
  const head = await content.head();
  assertHead(url, head, encoding);
  for await (const piece of content.decoded(head.header('content-encoding'))) {
    hash.update(piece);
    bytes += piece.length;
    rows += reading.add(piece);
  }
  if (!content.isWhole) throw new Error(`${url} was cut after ${bytes} bytes`);
  reading.end();
  return { rows, bytes, md5: hash.digest('hex') };
}

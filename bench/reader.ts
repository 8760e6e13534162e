import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { arrowMessages } from '../test/support/arrow.ts';
import { HttpBody } from './http-body.ts';

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

const READ_BYTES = 256 * 1024;
const [OPEN, CLOSE] = [0x7b, 0x7d];

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
  const { host, hostname, port, pathname, search } = new URL(url);
  const started = performance.now();
  const elapsed = () => (performance.now() - started) / 1000;
  return new Promise((resolve, reject) => {
    let bytes = 0;
    let firstByteSeconds = 0;
    let isOver = false;
    const body = new HttpBody((piece) => {
      if (bytes === 0) {
        assertHead(url, body, encoding);
        firstByteSeconds = elapsed();
      }
      bytes += piece.length;
      onPiece(piece);
      isOver ||= isEnough(bytes, piece);
    });
    const finish = (error?: Error) => {
      socket.destroy();
      if (error) reject(error);
      else resolve({ bytes, seconds: elapsed(), firstByteSeconds });
    };
    const callback = (length: number, buffer: Uint8Array): boolean => {
      try {
        body.push(Buffer.from(buffer.buffer, buffer.byteOffset, length));
        if (body.ended && bytes === 0) assertHead(url, body, encoding);
        if (body.ended || isOver) finish();
      } catch (error) {
        finish(error instanceof Error ? error : new Error(String(error)));
      }
      return true;
    };
    const onread = { buffer: Buffer.allocUnsafeSlow(READ_BYTES), callback };
    const socket = connect({ host: hostname, port: Number(port), onread });
    socket.on('error', finish);
    socket.on('close', () => finish(new Error(`${url} was cut after ${bytes} bytes`)));
    socket.write(
      `GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nAccept-Encoding: ${encoding}\r\n\r\n`,
    );
  });
}

function assertHead(url: string, { status, head }: HttpBody, encoding: Encoding): void {
  if (status !== 200) throw new Error(`${url} answered ${status}`);
  const came = /^content-encoding: *(\S+)/im.exec(head)?.[1] ?? 'identity';
  if (came !== encoding) throw new Error(`${url} was asked for ${encoding} and came as ${came}`);
}

/**
 * Reads a stream to its end and resolves with its content. Rows are counted by their braces, since the generated texts
 * have none.
 */
export async function verifyStream(url: string, encoding: Encoding): Promise<Verified> {
  const hash = createHash('md5');
  let rows = 0;
  let depth = 0;
  let bytes = 0;
  const take = (piece: Uint8Array): void => {
    hash.update(piece);
    bytes += piece.length;
    for (const byte of piece)
      if (byte === OPEN && depth++ === 0) rows++;
      else if (byte === CLOSE) depth--;
  };
  const decoder = decoderOf(encoding);
  if (decoder === null) {
    await readStream(url, encoding, take);
  } else {
    const decoded = (async () => {
      for await (const piece of decoder as AsyncIterable<Uint8Array>) take(piece);
    })();
    const read = async () => {
      await readStream(url, encoding, (piece) => void decoder.write(Buffer.from(piece)));
      decoder.end();
    };
    await Promise.all([read(), decoded]);
  }
  return { rows, bytes, md5: hash.digest('hex') };
}

/** Reads a stream of Arrow to its end marker and resolves with its content. */
export async function verifyArrow(url: string): Promise<Verified> {
  const pieces: Buffer[] = [];
  await readStream(url, 'identity', (piece) => void pieces.push(Buffer.from(piece)));
  const all = Buffer.concat(pieces);
  const rows = arrowMessages(all).reduce((sum, message) => sum + message.rows, 0);
  return { rows, bytes: all.length, md5: createHash('md5').update(all).digest('hex') };
}

function decoderOf(encoding: Encoding): Transform | null {
  if (encoding === 'identity') return null;
  return encoding === 'br' ? createBrotliDecompress() : createGunzip();
}

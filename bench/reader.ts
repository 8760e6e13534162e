import { createHash } from 'node:crypto';
import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { arrowMessages } from '../test/support/arrow.ts';
import type { Head } from '../src/load/http/answer-reader.ts';
import { Connection } from '../src/load/http/connection.ts';

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
  const to = new URL(url);
  const started = performance.now();
  const elapsed = () => (performance.now() - started) / 1000;
  const connection = new Connection(to);
  try {
    return await new Promise((resolve, reject) => {
      let bytes = 0;
      let firstByteSeconds = 0;
      const finish = () => resolve({ bytes, seconds: elapsed(), firstByteSeconds });
      connection.send(
        `GET ${to.pathname}${to.search} HTTP/1.1\r\nHost: ${to.host}\r\nAccept-Encoding: ${encoding}\r\n\r\n`,
        {
          onHead: (head) => assertHead(url, head, encoding),
          onBody: (piece) => {
            if (bytes === 0) firstByteSeconds = elapsed();
            bytes += piece.length;
            onPiece(piece);
            if (isEnough(bytes, piece)) finish();
          },
          onEnd: finish,
          onCut: (reason) => reject(new Error(`${url} was cut after ${bytes} bytes: ${reason.message}`)),
        },
      );
    });
  } finally {
    connection.close();
  }
}

function assertHead(url: string, head: Head, encoding: Encoding): void {
  if (head.status !== 200) throw new Error(`${url} answered ${head.status}`);
  const came = head.header('content-encoding') ?? 'identity';
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

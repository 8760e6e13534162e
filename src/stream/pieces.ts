import { availableParallelism } from 'node:os';
import * as zlib from 'node:zlib';
import { atOnce } from './at-once.ts';

/**
 * Compression in pieces: each is made of its own bytes alone, and joined they are one valid file. So a file can be gone
 * on with behind any piece without what a compressor remembered, the result is the same byte for byte, and several pieces
 * are compressed at a time, on other threads.
 */
export interface PieceCodec {
  /** What stands before the first piece and behind the last. */
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
  compress(text: Uint8Array): Promise<Uint8Array>;
}

const { constants } = zlib;
const NOTHING = new Uint8Array(0);

/** Bytes of text in a piece at most. Measured on NDJSON: twice of it gains 0.5 % of size, and costs twice the memory. */
const PIECE_BYTES = 1 << 19;

/** Pieces of all files that are compressed at a time: one core is left to the thread that answers requests. */
const compressing = atOnce(Math.max(1, availableParallelism() - 1));

/** Quality of files, which are made once and fetched often: gzip 6, br 5 (6.4:1 and 6.5:1; streams have 5.1 and 5.4). */
const GZIP_LEVEL = 6;
const BROTLI = {
  flush: constants.BROTLI_OPERATION_PROCESS,
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 5,
    [constants.BROTLI_PARAM_LGWIN]: 20, // 1 MiB: a piece, and what of its primer is farther away
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
    [constants.BROTLI_PARAM_DISABLE_LITERAL_CONTEXT_MODELING]: 1,
  },
};

/** Members of a gzip file follow one another (RFC 1952, 2.2). */
const gzip: PieceCodec = { head: NOTHING, tail: NOTHING, compress: inPieces(gzipMember) };

/**
 * A brotli file is one stream (RFC 7932), whose state goes on from piece to piece: the window, the last four distances,
 * the two bytes before a literal, and where the static dictionary begins. A piece must need none of it. Brotli's own way
 * for that (BROTLI_PARAM_STREAM_OFFSET) is closed in Node, so the encoder is primed with a text that makes it forget:
 * of bytes that no UTF-8 has, so that no copy reaches back into it; which ends with four copies from farther away than a
 * piece is long, so that no distance in the piece is told by one of the last four; and in which so many look-ups in the
 * dictionary fail that the encoder gives it up. Literals have no context by a parameter. What the primer became is thrown away.
 * Each piece is decoded as the only one before it is taken: what depended on anything before would not give its text.
 */
const br: PieceCodec = {
  head: Buffer.of(0x67, 0x00), // the window's size (9.1), and an empty block of metadata to the byte's end (9.2)
  tail: Buffer.of(3), // an empty last block
  compress: inPieces(brotliPiece),
};

const none: PieceCodec = { head: NOTHING, tail: NOTHING, compress: (text) => Promise.resolve(text) };

export const pieceCodecs = { none, gzip, br } as const;

function inPieces(compress: (text: Uint8Array) => Promise<Uint8Array>): PieceCodec['compress'] {
  return async (text) => {
    const pieces: Uint8Array[] = [];
    let at = 0;
    do {
      const part = text.subarray(at, (at += PIECE_BYTES));
      pieces.push(await compressing(() => compress(part)));
    } while (at < text.length);
    return Buffer.concat(pieces);
  };
}

function gzipMember(text: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    zlib.gzip(text, { level: GZIP_LEVEL }, (error, bytes) => (error ? reject(error) : resolve(bytes)));
  });
}

async function brotliPiece(text: Uint8Array): Promise<Uint8Array> {
  const encoder = zlib.createBrotliCompress(BROTLI);
  try {
    encoder.write(primer());
    await flushed(encoder);
    if (text.length > 0) encoder.write(text);
    const piece = await flushed(encoder);
    const decoded = await brotliDecoded(Buffer.concat([br.head, piece, br.tail]));
    if (!decoded.equals(text)) throw new Error('a piece of brotli depends on what stood before it');
    return piece;
  } finally {
    encoder.destroy();
  }
}

function brotliDecoded(bytes: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    zlib.brotliDecompress(bytes, (error, text) => (error ? reject(error) : resolve(text)));
  });
}

/** What a compressor makes of all that was written to it, to a whole byte. */
function flushed(encoder: zlib.BrotliCompress): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const take = (chunk: Buffer) => chunks.push(chunk);
    encoder.on('data', take);
    encoder.once('error', reject);
    encoder.flush(constants.BROTLI_OPERATION_FLUSH, () => {
      setImmediate(() => {
        // what was made by then is given in the same turn
        encoder.off('data', take);
        encoder.off('error', reject);
        resolve(Buffer.concat(chunks));
      });
    });
  });
}

let madePrimer: Buffer | null = null;

/** Bytes from 0xf8 on occur in no UTF-8. */
function primer(): Buffer {
  if (madePrimer) return madePrimer;
  let state = 7;
  const noise = (length: number) =>
    Buffer.from(
      Array.from({ length }, () => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
        return 0xf8 + ((state >>> 16) & 7);
      }),
    );
  const copied = [noise(96), noise(96), noise(96), noise(96)];
  const gap = Buffer.alloc(PIECE_BYTES, 0xf8);
  return (madePrimer = Buffer.concat([noise(4096), ...copied, gap, ...copied.reverse()]));
}

import { availableParallelism } from 'node:os';
import * as zlib from 'node:zlib';
import { Turns } from '../store/turns/work-turns.ts';
import { FlushedTransform } from './flushed-transform.ts';

/** Compresses a file in pieces, whose joined results are the file. Pieces may overlap, and keep their order. */
export interface PieceCodec {
  compress(text: Uint8Array): Promise<Uint8Array>;
  /** What follows the last piece. */
  end(): Promise<Uint8Array>;
  /** Releases the memory. Pieces under way are rejected. */
  close(): void;
}

const { constants } = zlib;
const NOTHING = new Uint8Array(0);

/** The pieces of all files that are compressed at a time. One core is left to the thread that answers requests. */
const compressing = new Turns(Math.max(1, availableParallelism() - 1));

/** Files are made once and fetched often: gzip 6, br 5 (6.4:1 and 6.5:1; streams have 5.1 and 5.4). */
const GZIP_LEVEL = 6;
const BROTLI = {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 5,
    [constants.BROTLI_PARAM_LGWIN]: 20,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
  },
};

export const COMPRESSIONS = ['none', 'gzip', 'br'] as const;
export type Compression = (typeof COMPRESSIONS)[number];
export const pieceCodecs: Readonly<Record<Compression, () => PieceCodec>> = { none, gzip, br };

function none(): PieceCodec {
  return {
    compress: (text) => Promise.resolve(text),
    end: () => Promise.resolve(NOTHING),
    close: () => undefined,
  };
}

/** A gzip file is a sequence of members (RFC 1952, 2.2). Each piece is one, so several are made at a time. */
function gzip(): PieceCodec {
  return { ...none(), compress: (text) => compressing.take(() => gzipMember(text)) };
}

/** A brotli file is one stream, made by one encoder. */
function br(): PieceCodec {
  const encoder = new FlushedTransform(zlib.createBrotliCompress(BROTLI));
  const inOrder = new Turns();
  const take = (work: () => Promise<readonly Uint8Array[]>) =>
    inOrder.take(() => compressing.take(async () => Buffer.concat(await work())));
  return {
    compress: (text) => take(() => encoder.compress(text)),
    end: () => take(() => encoder.end()),
    close: () => encoder.destroy(new Error('the file is closed')),
  };
}

function gzipMember(text: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    zlib.gzip(text, { level: GZIP_LEVEL }, (error, bytes) => (error ? reject(error) : resolve(bytes)));
  });
}

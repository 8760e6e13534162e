import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import type { Sink } from './sink.ts';

/** A content coding (RFC 9110, 8.4.1). */
export type Coding = 'br' | 'gzip' | 'zstd';

export interface CompressOptions {
  /** Runs `action` after `ms`, unless what it returns is called before. */
  readonly schedule?: (action: () => void, ms: number) => () => void;
}

/** Bytes of input, and milliseconds after the first of them, at which what was written so far is sent. */
const FLUSH_BYTES = 65_536;
const FLUSH_MS = 200;
const CHUNK_BYTES = 32_768;

const { constants } = zlib;

interface Codec {
  /** For streams: fast, and little memory held while the reader stalls. */
  readonly stream: () => zlib.BrotliCompress | zlib.Gzip;
  /** What a flush is called there. */
  readonly flush: number;
  /** For a body in one piece: worth more time. */
  readonly whole: (bytes: Uint8Array) => Promise<Uint8Array>;
}

const brotli = promisify<zlib.InputType, zlib.BrotliOptions, Buffer>(zlib.brotliCompress);
const gzip = promisify<zlib.InputType, zlib.ZlibOptions, Buffer>(zlib.gzip);

const br: Codec = {
  stream: () =>
    zlib.createBrotliCompress({
      params: {
        [constants.BROTLI_PARAM_QUALITY]: 1,
        [constants.BROTLI_PARAM_LGWIN]: 18,
        [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      },
    }),
  flush: constants.BROTLI_OPERATION_FLUSH,
  whole: (bytes) =>
    brotli(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: 4,
        [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      },
    }),
};

const gz: Codec = {
  stream: () => zlib.createGzip({ level: 1 }),
  flush: constants.Z_SYNC_FLUSH,
  whole: (bytes) => gzip(bytes, { level: 6 }),
};

const table: ReadonlyMap<Coding, Codec> = new Map<Coding, Codec>([
  ['br', br],
  ['gzip', gz],
]);

/** The codings there are, the preferred one first. */
export const codings: readonly Coding[] = [...table.keys()];

/** `bytes` compressed as a whole, on another thread. */
export function compressBytes(coding: Coding, bytes: Uint8Array): Promise<Uint8Array> {
  return codec(coding).whole(bytes);
}

function codec(coding: Coding): Codec {
  const found = table.get(coding);
  if (found === undefined) throw new TypeError(`The coding ${coding} is not available here.`);
  return found;
}

/** A sink that compresses into `sink`. */
export function compress(coding: Coding, sink: Sink, options: CompressOptions = {}): Sink {
  return new Compressor(codec(coding), sink, options);
}

function scheduleOnClock(action: () => void, ms: number): () => void {
  const timer = setTimeout(action, ms).unref();
  return () => clearTimeout(timer);
}

class Compressor implements Sink {
  readonly chunkBytes = CHUNK_BYTES;
  readonly signal: AbortSignal;
  private readonly sink: Sink;
  private readonly stream: zlib.BrotliCompress | zlib.Gzip;
  private readonly flushMode: number;
  private readonly schedule: (action: () => void, ms: number) => () => void;
  private unflushed = 0;
  private cancelFlush: (() => void) | null = null;
  private readonly forwarded: Promise<void>;

  constructor({ stream, flush }: Codec, sink: Sink, options: CompressOptions) {
    this.sink = sink;
    this.signal = sink.signal;
    this.schedule = options.schedule ?? scheduleOnClock;
    this.flushMode = flush;
    this.stream = stream();
    this.forwarded = this.forward();
    this.forwarded.catch(() => undefined);
  }

  write(chunk: Uint8Array): void | Promise<void> {
    this.signal.throwIfAborted();
    this.unflushed += chunk.length;
    const full = !this.stream.write(Buffer.from(chunk));
    if (this.unflushed >= FLUSH_BYTES) return this.flush();
    this.cancelFlush ??= this.schedule(() => void this.flush(), FLUSH_MS);
    if (full) return new Promise((resolve) => this.stream.once('drain', resolve));
  }

  flush(): Promise<void> {
    this.cancelFlush?.();
    this.cancelFlush = null;
    this.unflushed = 0;
    return new Promise((resolve) => this.stream.flush(this.flushMode, resolve));
  }

  async end(): Promise<void> {
    this.cancelFlush?.();
    this.stream.end();
    await this.forwarded;
  }

  fail(error: unknown): void {
    this.cancelFlush?.();
    this.stream.destroy();
    this.sink.fail(error);
  }

  private async forward(): Promise<void> {
    for await (const chunk of this.stream as AsyncIterable<Buffer>) await this.sink.write(chunk);
  }
}

import { connect } from 'node:net';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import type { Sink } from '../../../src/pipeline/sink.ts';

/**
 * The length of the pattern, a prime. A lost or duplicated buffer of a round size therefore always shifts the
 * content.
 */
const PATTERN_BYTES = 1_048_573;

/** Content of any length that hardly compresses: byte `i` is `PATTERN[i % PATTERN_BYTES]`. */
const PATTERN = pseudoRandomText(PATTERN_BYTES);

function pseudoRandomText(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let state = 12_345;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[i] = 32 + ((state >>> 16) % 95);
  }
  return bytes;
}

/** The first `length` bytes of the content. */
export function content(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; at += PATTERN_BYTES) PATTERN.copy(bytes, at);
  return bytes;
}

/** Writes the content in chunks of many sizes from one buffer, which is overwritten after each write. */
export async function writeContent(sink: Sink, length: number): Promise<void> {
  const memory = Buffer.alloc(3 * sink.chunkBytes);
  for (let at = 0, i = 0; at < length; i++) {
    const size = Math.min(length - at, [sink.chunkBytes, 100, 3 * sink.chunkBytes, 1, 20_000][i % 5] ?? 1);
    const chunk = memory.subarray(0, size);
    for (let done = 0; done < size;) done += PATTERN.copy(chunk, done, (at + done) % PATTERN_BYTES);
    const full = sink.write(chunk);
    chunk.fill(0);
    if (full) await full;
    at += size;
  }
}

export interface Reading {
  /** The number of correct bytes of content. */
  readonly right: number;
  /** The position of the first wrong byte, or null. */
  readonly wrongAt: number | null;
  /** Whether the answer ended as HTTP requires, and the decoder agrees. */
  readonly whole: boolean;
}

/**
 * When the reader stalls: on average after every `everyBytes` bytes, for a random part of `stallMs`. It reads
 * nothing before `from` resolves.
 */
export interface Pace {
  readonly from?: Promise<unknown>;
  readonly everyBytes: number;
  readonly stallMs: number;
}

export type Coding = 'identity' | 'gzip' | 'br';

export interface Asked {
  readonly port: number;
  readonly path: string;
  readonly coding: Coding;
}

const DECODERS = { identity: () => null, gzip: createGunzip, br: createBrotliDecompress };

/**
 * Sends a GET request over a raw socket, reads the answer slowly, and compares each received byte with a
 * pattern that is repeated to the end. It decodes the framing itself, because an HTTP library could hide the
 * faults it must find.
 */
export function readSlowly({ port, path, coding }: Asked, pace: Pace, pattern = PATTERN): Promise<Reading> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const decoder = new FramingDecoder();
    const unzip = DECODERS[coding]();
    let at = 0;
    let wrongAt: number | null = null;
    let unzipped = unzip === null;
    const check = (bytes: Uint8Array) => {
      for (let done = 0; done < bytes.length && wrongAt === null;) {
        const from = (at + done) % pattern.length;
        const size = Math.min(bytes.length - done, pattern.length - from);
        if (pattern.compare(bytes, done, done + size, from, from + size) !== 0) wrongAt = at + done;
        done += size;
      }
      at += bytes.length;
    };
    const settle = () => resolve({ right: wrongAt ?? at, wrongAt, whole: decoder.ended && unzipped });
    const finish = () => {
      if (unzip === null || !decoder.ended || unzipped) settle();
      else unzip.once('end', settle).once('error', settle);
    };
    unzip?.on('data', check).on('end', () => (unzipped = true));
    unzip?.on('error', () => (wrongAt ??= at));
    socket.write(`GET ${path} HTTP/1.1\r\nHost: test\r\nAccept-Encoding: ${coding}\r\n\r\n`);
    if (pace.from) {
      socket.pause();
      void pace.from.then(() => socket.resume());
    }
    socket.on('data', (data) => {
      for (const piece of decoder.decode(data)) {
        if (unzip === null) check(piece);
        else unzip.write(piece);
      }
      if (decoder.ended) {
        unzip?.end();
        socket.destroy();
      } else if (Math.random() < data.length / pace.everyBytes) {
        socket.pause();
        setTimeout(() => socket.resume(), Math.random() * pace.stallMs);
      }
    });
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', finish);
  });
}

/** A strict decoder of one HTTP/1.1 answer, chunked or with a given length. */
class FramingDecoder {
  ended = false;
  private state: 'head' | 'size' | 'data' | 'crlf' | 'last' | 'length' = 'head';
  private line = '';
  private left = 0;

  *decode(data: Buffer): Generator<Buffer> {
    let at = 0;
    while (at < data.length && !this.ended) {
      if (this.state === 'data' || this.state === 'length') {
        const piece = data.subarray(at, at + this.left);
        at += piece.length;
        this.left -= piece.length;
        yield piece;
        if (this.left === 0) this.bodyPieceDone();
        continue;
      }
      this.line += String.fromCharCode(data[at++] ?? 0);
      if (this.line.endsWith(this.state === 'head' ? '\r\n\r\n' : '\r\n')) this.lineDone();
    }
    if (at < data.length) throw new Error('bytes after the end of the answer');
  }

  private bodyPieceDone(): void {
    if (this.state === 'length') this.ended = true;
    else this.state = 'crlf';
  }

  private lineDone(): void {
    const { line } = this;
    this.line = '';
    switch (this.state) {
      case 'head': {
        const length = /\r\ncontent-length: (\d+)\r\n/i.exec(line)?.[1];
        this.left = Number(length ?? 0);
        this.state = length === undefined ? 'size' : 'length';
        return;
      }
      case 'size':
        if (!/^[0-9a-f]+\r\n$/i.test(line)) throw new Error(`not a chunk size: ${JSON.stringify(line)}`);
        this.left = parseInt(line, 16);
        this.state = this.left === 0 ? 'last' : 'data';
        return;
      case 'crlf':
        if (line !== '\r\n') throw new Error(`a chunk is followed by ${JSON.stringify(line)}`);
        this.state = 'size';
        return;
      case 'last':
        if (line !== '\r\n') throw new Error(`the answer ends with ${JSON.stringify(line)}`);
        this.ended = true;
        return;
      case 'data':
      case 'length':
        throw new TypeError('a body piece is no line');
    }
  }
}

import { connect } from 'node:net';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { AnswerReader } from '../../../src/load/http/answer-reader.ts';
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
 * pattern that is repeated to the end. The load test's reader decodes the framing, because an HTTP library could
 * hide the faults it must find.
 */
export function readSlowly({ port, path, coding }: Asked, pace: Pace, pattern = PATTERN): Promise<Reading> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const unzip = DECODERS[coding]();
    let at = 0;
    let hasEnded = false;
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
    const answer = new AnswerReader({
      onHead: () => {
        if (hasEnded) throw new Error('bytes after the end of the answer');
      },
      onBody: (piece) => {
        if (unzip === null) check(piece);
        else unzip.write(piece);
      },
      onEnd: () => (hasEnded = true),
    });
    const settle = () => resolve({ right: wrongAt ?? at, wrongAt, whole: hasEnded && unzipped });
    const finish = () => {
      if (unzip === null || !hasEnded || unzipped) settle();
      else unzip.once('end', settle).once('error', settle);
    };
    unzip?.on('data', check).on('end', () => (unzipped = true));
    unzip?.on('error', () => (wrongAt ??= at));
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: ${coding}\r\n\r\n`);
    if (pace.from) {
      socket.pause();
      void pace.from.then(() => socket.resume());
    }
    socket.on('data', (data) => {
      answer.push(data);
      if (hasEnded) {
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

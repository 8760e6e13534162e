import { constants, open } from 'node:fs';
import fs from 'node:fs/promises';
import { Socket } from 'node:net';
import { addAbortSignal, type Readable } from 'node:stream';
import { promisify } from 'node:util';
import { quoted } from '../terminal/text.ts';
import { peek } from './chunks.ts';
import { codingOf, decompressed } from './compressed.ts';
import type { Coding } from './compressed-bytes.ts';
import { BrokenSource } from './row.ts';

/** The file name that stands for standard input. */
export const STDIN = '-';
const CHUNK_BYTES = 256 * 1024;
/** The length of the longest beginning that tells a coding. Bytes. */
const MAGIC_BYTES = 4;

/**
 * Opens a file, or stdin for `-`. gzip and zstd are recognized by their first bytes, Brotli, which has none, by the
 * extension `.br`. Reading the decompressed `bytes` rejects with BrokenSource when that is not possible to their end, and
 * after `signal` is aborted. `size`: the bytes of a file on disk, which can be opened again; null for stdin and pipes.
 * `position`: how many of them were read. `close` may be called when nothing was read.
 */
export async function openSource(file: string, stdin: Readable, signal: AbortSignal) {
  const { stream, size } = file === STDIN ? { stream: stdin, size: null } : await openFile(file);
  let position = 0;
  const counted = async function* (): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of addAbortSignal(signal, stream) as AsyncIterable<Buffer>) {
        position += chunk.length;
        yield chunk;
      }
    } catch (error) {
      signal.throwIfAborted();
      throw new BrokenSource(`cannot read the source to its end: ${reasonOf(error)}`, { cause: error });
    }
  };
  const closing = async function* (content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    try {
      yield* content;
    } finally {
      stream.destroy();
    }
  };
  try {
    const { head, bytes } = await peek(counted(), (seen) => seen.length >= MAGIC_BYTES);
    const coding = codingOfFile(file, head);
    return {
      bytes: coding ? closing(decompressed(bytes, coding)) : bytes,
      size,
      position: () => position,
      close: () => void stream.destroy(),
    };
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

/** The coding of a file. Throws BrokenSource when its name states one, and its bytes end before they show it. */
function codingOfFile(file: string, head: Buffer): Coding | null {
  if (/\.br$/i.test(file)) return 'Brotli';
  const coding = codingOf(head);
  const [, named] = /\.(gz|zst)$/i.exec(file) ?? [];
  if (!coding && named !== undefined && head.length < MAGIC_BYTES)
    throw new BrokenSource(
      `cannot read the source to its end: a .${named} file ends too early, at byte ${head.length}`,
    );
  return coding;
}

async function openFile(file: string): Promise<{ stream: Readable; size: number | null }> {
  try {
    const stat = await fs.stat(file);
    if (stat.isFIFO()) return { stream: await openPipe(file), size: null };
    const handle = await fs.open(file);
    return {
      stream: handle.createReadStream({ highWaterMark: CHUNK_BYTES }),
      size: stat.isFile() ? stat.size : null,
    };
  } catch (error) {
    throw new BrokenSource(`cannot open ${quoted(file)}: ${reasonOf(error)}`, { cause: error });
  }
}

/**
 * Opens a named pipe. A thread that waits until somebody writes to it could not be stopped, and the process not end. So it
 * is opened and read without waiting, by events, as a socket is.
 */
async function openPipe(file: string): Promise<Readable> {
  const fd = await promisify(open)(file, constants.O_RDONLY | constants.O_NONBLOCK);
  return new Socket({ fd, readable: true, writable: false });
}

/** The message of a system error. A TypeError is an internal error and is thrown again. */
function reasonOf(error: unknown): string {
  if (error instanceof Error && 'code' in error) return error.message;
  throw error;
}

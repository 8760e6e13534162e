import * as zlib from 'node:zlib';
import { crc32 } from '../pipeline/crc32.ts';
import { CompressedBytes, isZlib, type Coding } from './compressed-bytes.ts';
import { zstdFrames, isZstd } from './zstd.ts';

const GZIP_MAGIC = 0x8b1f;
const DEFLATE = 8;
/** The flags of a gzip header (RFC 1952, 2.3.1): what it has behind its first ten bytes. */
const HEADER_CHECKSUM = 0x02;
const EXTRA = 0x04;
const NAME = 0x08;
const COMMENT = 0x10;
const RESERVED = 0xe0;

/** How compressed bytes begin: the coding, if they are of one that has such bytes. */
export function codingOf(head: Buffer): Coding | null {
  if (head.length >= 2 && head.readUInt16LE() === GZIP_MAGIC) return 'gzip';
  return head.length >= 4 && isZstd(head.readUInt32LE()) ? 'zstd' : null;
}

/**
 * The content of compressed bytes: of all members of gzip, with zeros between and behind them, of all frames of zstd, or of
 * one stream of Brotli. Rejects with BrokenSource, which names the byte, where they end too early or go on behind their end.
 */
export function decompressed(source: AsyncIterable<Buffer>, coding: Coding): AsyncGenerator<Buffer> {
  const input = new CompressedBytes(source[Symbol.asyncIterator](), coding);
  if (coding === 'gzip') return members(input);
  return coding === 'zstd' ? zstdFrames(input) : brotli(input);
}

async function* members(input: CompressedBytes): AsyncGenerator<Buffer> {
  for (let isFirst = true; isFirst || !(await skipZeros(input)); isFirst = false) {
    await takeGzipHeader(input, isFirst);
    let checksum = 0;
    let length = 0;
    for await (const chunk of inflated(input, zlib.createInflateRaw())) {
      checksum = crc32(chunk, checksum);
      length = (length + chunk.length) >>> 0;
      yield chunk;
    }
    const at = input.position;
    const trailer = await input.take(8);
    if (trailer.readUInt32LE(0) !== checksum || trailer.readUInt32LE(4) !== length)
      input.fail('has another checksum than its content, at', at);
  }
}

/** Takes the header of a member. What follows the members before it may be none. */
async function takeGzipHeader(input: CompressedBytes, isFirst: boolean): Promise<void> {
  const at = input.position;
  const magic = await input.next(1);
  if (!isFirst && magic?.[0] !== (GZIP_MAGIC & 0xff)) input.failBehind(at);
  const second = await input.take(1);
  if (!isFirst && second[0] !== GZIP_MAGIC >> 8) input.failBehind(at);
  const [method = 0, flags = 0] = await input.take(8);
  if (method !== DEFLATE || (flags & RESERVED) !== 0) input.fail('has an unknown header, at', at);
  if (flags & EXTRA) await input.skip((await input.take(2)).readUInt16LE());
  for (const text of [NAME, COMMENT]) if (flags & text) while ((await input.take(1))[0] !== 0);
  if (flags & HEADER_CHECKSUM) await input.skip(2);
}

/** Passes zeros, as gzip itself does: archives are padded with them. Returns whether nothing follows. */
async function skipZeros(input: CompressedBytes): Promise<boolean> {
  for (let bytes = await input.next(); bytes; bytes = await input.next()) {
    const at = bytes.findIndex((byte) => byte !== 0);
    if (at < 0) continue;
    input.giveBack(bytes.subarray(at));
    return false;
  }
  return true;
}

async function* brotli(input: CompressedBytes): AsyncGenerator<Buffer> {
  yield* inflated(input, zlib.createBrotliDecompress());
  if (!(await input.isAtEnd())) input.failBehind(input.position);
}

/** The content of one compressed stream. The input is behind its last byte afterwards. */
async function* inflated(
  input: CompressedBytes,
  decoder: zlib.InflateRaw | zlib.BrotliDecompress,
): AsyncGenerator<Buffer> {
  const start = input.position;
  let last: Buffer = Buffer.alloc(0);
  const feed = async (): Promise<void> => {
    for (let next = await input.next(); next; next = await input.next()) {
      const bytes = (last = next);
      await new Promise<void>((resolve, reject) =>
        decoder.write(bytes, (error) => (error ? reject(error) : resolve())),
      );
      if (decoder.bytesWritten < input.position - start) return; // the stream ended within the bytes
    }
    decoder.end();
  };
  feed().catch((error: unknown) => decoder.destroy(error as Error));
  try {
    yield* decoder as AsyncIterable<Buffer>;
  } catch (error) {
    if (isZlib(error, 'Z_BUF_ERROR')) input.fail('ends too early, at', input.position, { cause: error });
    if (isZlib(error)) input.fail(`is damaged (${error.message}) before`, input.position, { cause: error });
    throw error;
  } finally {
    decoder.destroy();
  }
  const unread = input.position - start - decoder.bytesWritten;
  input.giveBack(last.subarray(last.length - unread));
}

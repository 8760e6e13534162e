import { pipeline, type Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { isZlib, type CompressedBytes } from './compressed-bytes.ts';
import { BrokenSource } from './row.ts';

const ZSTD_MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a50;
/** Bytes of the size of the content, and of the dictionary's number, by their codes (RFC 8878, 3.1.1.1.1). */
const SIZE_BYTES = [0, 2, 4, 8] as const;
const DICTIONARY_BYTES = [0, 1, 2, 4] as const;
const REPEATED = 1;
const RESERVED_BLOCK = 3;
/** The pieces of a frame are given to the decoder together. Bytes. */
const WRITE_BYTES = 64 * 1024;

/** The content of all frames. Throws BrokenSource where this Node.js has no zstd. */
export function zstdFrames(input: CompressedBytes): AsyncGenerator<Buffer> {
  // Node provides it from 22.15 and 23.8 on. The type definitions are those of Node 20.
  const { createZstdDecompress } = zlib as { createZstdDecompress?: () => Transform };
  if (createZstdDecompress) return frames(input, createZstdDecompress());
  throw new BrokenSource('the file is compressed with zstd, which requires Node.js 22.15 or newer');
}

async function* frames(input: CompressedBytes, decoder: Transform): AsyncGenerator<Buffer> {
  // An error of either stream also destroys the decoder, and so reaches the code that iterates.
  pipeline(joined(frameBytes(input)), decoder, () => undefined);
  try {
    yield* decoder as AsyncIterable<Buffer>;
  } catch (error) {
    if (isZlib(error)) input.fail(`is damaged (${error.message}) before`, input.position, { cause: error });
    throw error;
  }
}

/**
 * The bytes of all frames without the skippable ones (RFC 8878, 3.1). The decoder of Node 22 reads what follows a frame only
 * where its bytes come in another write, and takes a frame that is cut for a whole one.
 */
async function* frameBytes(input: CompressedBytes): AsyncGenerator<Buffer | null> {
  let hasFrame = false;
  while (!(await input.isAtEnd())) {
    const at = input.position;
    const begin = (await input.next(4)) ?? Buffer.alloc(0);
    const magic = Buffer.concat([begin, await input.take(4 - begin.length)]).readUInt32LE();
    if (isSkippable(magic)) {
      await input.skip((await input.take(4)).readUInt32LE());
      continue;
    }
    if (magic !== ZSTD_MAGIC) input.failBehind(at);
    hasFrame = true;
    yield Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
    const descriptor = await input.take(1);
    const [code = 0] = descriptor;
    yield descriptor;
    yield await input.take(zstdHeaderBytes(code));
    for (let isLast = false; !isLast;) {
      const header = await input.take(3);
      yield header;
      const bits = header.readUIntLE(0, 3);
      isLast = (bits & 1) === 1;
      const type = (bits >> 1) & 3;
      if (type === RESERVED_BLOCK) input.fail('is damaged (unknown type of block) at', input.position - 3);
      yield* input.pieces(type === REPEATED ? 1 : bits >> 3);
    }
    if (code & 0x04) yield await input.take(4);
    yield null;
  }
  if (!hasFrame) input.fail('ends too early, at', input.position); // writers put a skippable frame before the first
}

/** The bytes of a frame's header behind its descriptor: window, number of the dictionary, size of the content. */
function zstdHeaderBytes(descriptor: number): number {
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const sizeCode = descriptor >> 6;
  const size = sizeCode === 0 && isSingleSegment ? 1 : (SIZE_BYTES[sizeCode] ?? 0);
  return (isSingleSegment ? 0 : 1) + (DICTIONARY_BYTES[descriptor & 3] ?? 0) + size;
}

/** The same bytes in fewer pieces. null, the end of a frame, always ends a piece. */
async function* joined(pieces: AsyncIterable<Buffer | null>): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const piece of pieces) {
    if (piece) parts.push(piece);
    length += piece?.length ?? 0;
    if (piece && length < WRITE_BYTES) continue;
    if (length > 0) yield Buffer.concat(parts);
    parts = [];
    length = 0;
  }
}

/** Whether four bytes begin a frame of zstd. */
export function isZstd(magic: number): boolean {
  return magic === ZSTD_MAGIC || isSkippable(magic);
}

function isSkippable(magic: number): boolean {
  return (magic & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC;
}

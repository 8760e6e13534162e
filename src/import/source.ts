import { open } from 'node:fs/promises';
import { addAbortSignal, pipeline, type Readable, type Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { quoted } from '../terminal/text.ts';
import { peek } from './chunks.ts';
import { BrokenSource } from './row.ts';

/** The file name that stands for standard input. */
export const STDIN = '-';
const CHUNK_BYTES = 256 * 1024;
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

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
    for await (const chunk of addAbortSignal(signal, stream) as AsyncIterable<Buffer>) {
      position += chunk.length;
      yield chunk;
    }
  };
  try {
    const source = withBrokenSource(counted(), signal);
    const { head, bytes } = await peek(source, (seen) => seen.length >= ZSTD_MAGIC.length);
    const decompressor = decompressorFor(file, head);
    const content = decompressor ? withBrokenSource(through(bytes, decompressor), signal) : bytes;
    return { bytes: content, size, position: () => position, close: () => void stream.destroy() };
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

async function openFile(file: string): Promise<{ stream: Readable; size: number | null }> {
  try {
    const handle = await open(file);
    const stat = await handle.stat();
    return {
      stream: handle.createReadStream({ highWaterMark: CHUNK_BYTES }),
      size: stat.isFile() ? stat.size : null,
    };
  } catch (error) {
    throw new BrokenSource(`cannot open ${quoted(file)}: ${reasonOf(error)}`, { cause: error });
  }
}

function decompressorFor(file: string, head: Buffer): Transform | null {
  if (/\.br$/i.test(file)) return zlib.createBrotliDecompress();
  if (head.indexOf(GZIP_MAGIC) === 0) return zlib.createGunzip();
  if (head.indexOf(ZSTD_MAGIC) !== 0) return null;
  // Node provides it from 22.15 and 23.8 on. The type definitions are those of Node 20.
  const { createZstdDecompress } = zlib as { createZstdDecompress?: () => Transform };
  if (createZstdDecompress) return createZstdDecompress();
  throw new BrokenSource('the file is compressed with zstd, which requires Node.js 22.15 or newer');
}

function through(bytes: AsyncIterable<Buffer>, decompressor: Transform): AsyncIterable<Buffer> {
  // An error of either stream also destroys the decompressor, and so reaches the code that iterates.
  pipeline(bytes, decompressor, () => undefined);
  return decompressor as AsyncIterable<Buffer>;
}

/** The same bytes. Errors of the system and of zlib become BrokenSource. */
async function* withBrokenSource(bytes: AsyncIterable<Buffer>, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    yield* bytes;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof BrokenSource) throw error;
    throw new BrokenSource(`cannot read the source to its end: ${reasonOf(error)}`, { cause: error });
  }
}

/** The message of a system or zlib error. A TypeError is an internal error and is thrown again. */
function reasonOf(error: unknown): string {
  if (error instanceof Error && 'code' in error) return error.message;
  throw error;
}

import { open } from 'node:fs/promises';
import { addAbortSignal, pipeline, type Readable, type Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import type { Format } from '../rows/formats.ts';
import { quoted } from '../terminal/text.ts';
import { itemsUnderHeader, type Columns } from './item.ts';
import { readCsv } from './csv.ts';
import { readJsonArray } from './json.ts';
import { readNdjson } from './ndjson.ts';
import { BrokenSource, type Rows } from './row.ts';

/** The file name that stands for standard input. */
export const STDIN = '-';
const CHUNK_BYTES = 256 * 1024;
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
/** The length of the longest byte order mark, plus one. Bytes. */
const MARK_BYTES = 4;

/** An opened file or stdin. */
interface OpenedSource {
  /** The decompressed content. Throws BrokenSource when it cannot be read or decompressed to its end. */
  readonly bytes: AsyncIterable<Buffer>;
  /** The size of the file on disk, in bytes. null when it is unknown (stdin, a pipe). */
  readonly size: number | null;
  /** The number of these bytes read so far. */
  position(): number;
}

/**
 * Opens a file, or stdin for `-`. gzip and zstd are recognized by their first bytes, whatever the name.
 * Brotli, which has no such bytes, is recognized by the extension `.br`. Reading rejects after `signal` is
 * aborted.
 */
export async function openSource(file: string, stdin: Readable, signal: AbortSignal): Promise<OpenedSource> {
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
    return { bytes: content, size, position: () => position };
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
  if (startsWith(head, GZIP_MAGIC)) return zlib.createGunzip();
  if (!startsWith(head, ZSTD_MAGIC)) return null;
  // Node provides it from 22.15 and 23.8 on. The type definitions are those of Node 20.
  const { createZstdDecompress } = zlib as { createZstdDecompress?: () => Transform };
  if (createZstdDecompress) return createZstdDecompress();
  throw new BrokenSource('the file is compressed with zstd, which requires Node.js 22.15 or newer');
}

function startsWith(head: Buffer, magic: Buffer): boolean {
  return head.subarray(0, magic.length).equals(magic);
}

function through(bytes: AsyncIterable<Buffer>, decompressor: Transform): AsyncIterable<Buffer> {
  // An error of either stream also destroys the decompressor, and so reaches the code that iterates. Nothing
  // remains to be handled here.
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

/**
 * The rows of a file's decompressed content. `json` stands for an array, or for one object per line:
 * mongoexport writes the latter to files ending in .json, so the first byte that is not blank decides.
 */
export async function readRows(
  content: AsyncIterable<Buffer>,
  format: Format,
  columns: Columns,
): Promise<Rows> {
  const { head, bytes } = await peek(
    content,
    (seen) => seen.length >= MARK_BYTES && firstCharacter(seen) !== '',
  );
  refuseUtf16(head);
  switch (format) {
    case 'csv':
      return { unit: 'line', rows: readCsv(bytes, (header) => itemsUnderHeader(header, columns)) };
    case 'ndjson':
      return { unit: 'line', rows: readNdjson(bytes, columns) };
    case 'json':
      return readArrayOrLines(head, bytes, columns);
  }
}

function readArrayOrLines(head: Buffer, bytes: AsyncIterable<Buffer>, columns: Columns): Rows {
  const first = firstCharacter(head);
  if (first === '[') return { unit: 'row', rows: readJsonArray(bytes, columns) };
  if (first === '{') return { unit: 'line', rows: readNdjson(bytes, columns) };
  const found = first === '' ? 'is empty' : `begins with ${quoted(first)}`;
  throw new BrokenSource(`the file ${found}; expected a JSON array, or one JSON object per line`);
}

/** The first character after blanks and a UTF-8 byte order mark. Empty when none has come so far. */
function firstCharacter(head: Buffer): string {
  return head.toString('latin1').replace('\u00ef\u00bb\u00bf', '').trimStart().slice(0, 1);
}

function refuseUtf16(head: Buffer): void {
  const mark = head.subarray(0, 2).toString('hex');
  if (mark === 'fffe' || mark === 'feff') throw new BrokenSource('the file is UTF-16; expected UTF-8');
}

/** A stream of bytes whose beginning was read ahead. */
interface Peeked {
  /** The first bytes: at least as many as requested, or fewer when the source has no more. */
  readonly head: Buffer;
  /** All bytes, including the head. They can be read once. */
  readonly bytes: AsyncIterable<Buffer>;
}

/** Reads ahead until `isEnough` returns true for the bytes so far, or until the source ends. */
async function peek(source: AsyncIterable<Buffer>, isEnough: (head: Buffer) => boolean): Promise<Peeked> {
  const iterator = source[Symbol.asyncIterator]();
  let head: Buffer = Buffer.alloc(0);
  while (!isEnough(head)) {
    const next = await iterator.next();
    if (next.done) break;
    head = Buffer.concat([head, next.value]);
  }
  return { head, bytes: rejoin(head, iterator) };
}

async function* rejoin(head: Buffer, iterator: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  try {
    if (head.length > 0) yield head;
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
  } finally {
    await iterator.return?.();
  }
}

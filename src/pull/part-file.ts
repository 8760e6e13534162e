import { createReadStream } from 'node:fs';
import { open, truncate, type FileHandle } from 'node:fs/promises';
import { crc32 } from '../stream/crc32.ts';
import { LONGEST_BEGINNING } from './answer.ts';
import { Refused } from './failure.ts';
import { BEGINNING, type Place } from './place.ts';

const CHUNK_BYTES = 1024 * 1024;

/** Rows are written in pieces of so many bytes, so that little of them is in memory. */
const WRITTEN_BYTES = 256 * 1024;

/**
 * The rows of a part, on disk, as they came. What is behind the last proof is there, too, so that memory need not hold it: the
 * next proof makes it good, a cut takes it back, and after a kill the next run does.
 */
export class PartFile {
  readonly #handle: FileHandle;
  readonly #buffer = Buffer.allocUnsafe(WRITTEN_BYTES);
  #filled = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Opens it to go on behind a place; what stands behind that goes away. */
  static async open(path: string, { bytes }: Place): Promise<PartFile> {
    const handle = await open(path, 'a');
    await truncate(path, bytes);
    return new PartFile(handle);
  }

  async append(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const copied = bytes.copy(this.#buffer, this.#filled, at);
      this.#filled += copied;
      at += copied;
      if (this.#filled === this.#buffer.length) await this.flush();
    }
  }

  /** Resolves when the file has all that was appended. */
  async flush(): Promise<void> {
    await this.#handle.writeFile(this.#buffer.subarray(0, this.#filled));
    this.#filled = 0;
  }

  /** Takes back what stands behind a place. */
  async takeBack({ bytes }: Place): Promise<void> {
    this.#filled = 0;
    await this.#handle.truncate(bytes);
  }

  /** Closes it when everything is on the disk. */
  async close(): Promise<void> {
    try {
      await this.#handle.sync();
    } finally {
      await this.#handle.close();
    }
  }
}

/** How the first of the rows that are proved begins, see Proof; null when there is none. */
export async function firstRowOf(path: string, { bytes }: Place): Promise<string | null> {
  let text = '';
  for await (const chunk of bytesOf(path, 0, Math.min(bytes, LONGEST_BEGINNING)))
    text += chunk.toString('latin1');
  const end = text.indexOf('\n');
  return bytes === 0 ? null : text.slice(0, end === -1 ? text.length : end);
}

/** The last of these places, in their order, that the file agrees with byte for byte; the beginning when there is none. */
export async function lastTruePlace(path: string, places: readonly Place[]): Promise<Place> {
  let found = BEGINNING;
  let [at, crc] = [0, 0];
  for (const place of places) {
    for await (const chunk of bytesOf(path, at, place.bytes)) {
      crc = crc32(chunk, crc);
      at += chunk.length;
    }
    if (at !== place.bytes || crc !== place.crc32) return found;
    found = place;
  }
  return found;
}

/** A part's rows read back from the disk. Refused at their end when they are not those that were proved. */
export async function* provedBytes(
  path: string,
  { bytes, crc32: proved }: Place,
): AsyncGenerator<Buffer, void, undefined> {
  let [length, crc] = [0, 0];
  for await (const chunk of bytesOf(path, 0, bytes)) {
    crc = crc32(chunk, crc);
    length += chunk.length;
    yield chunk;
  }
  if (length !== bytes || crc !== proved)
    throw new Refused(`${path} is not what was written there: is another pull at work on it?`);
}

async function* bytesOf(path: string, from: number, to: number): AsyncGenerator<Buffer, void, undefined> {
  if (to <= from) return;
  try {
    const stream = createReadStream(path, { start: from, end: to - 1, highWaterMark: CHUNK_BYTES });
    yield* stream as AsyncIterable<Buffer>;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
}

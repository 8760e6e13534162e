import { createReadStream } from 'node:fs';
import { open, truncate, type FileHandle } from 'node:fs/promises';
import { crc32 } from '../stream/crc32.ts';
import { LONGEST_BEGINNING } from './answer.ts';
import { Refused } from './failure.ts';
import { BEGINNING, type Place } from './place.ts';

const CHUNK_BYTES = 1024 * 1024;

/** The size of the write buffer, in bytes. It keeps the memory for rows small. */
const WRITTEN_BYTES = 256 * 1024;

/**
 * The rows of a part, on disk, as they came. The file also holds the rows behind the last proof, so that
 * memory need not hold them. The next proof confirms them. A cut removes them, and after a kill the next run
 * does.
 */
export class PartFile {
  readonly #handle: FileHandle;
  readonly #buffer = Buffer.allocUnsafe(WRITTEN_BYTES);
  #filled = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Opens the file at a place. Anything behind the place is removed. */
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

  /** Writes all appended bytes to the file. */
  async flush(): Promise<void> {
    await this.#handle.writeFile(this.#buffer.subarray(0, this.#filled));
    this.#filled = 0;
  }

  /** Removes everything behind a place. */
  async takeBack({ bytes }: Place): Promise<void> {
    this.#filled = 0;
    await this.#handle.truncate(bytes);
  }

  /** Closes the file after everything is synchronized to disk. */
  async close(): Promise<void> {
    try {
      await this.#handle.sync();
    } finally {
      await this.#handle.close();
    }
  }
}

/** The beginning of the first proved row (see Proof). null when there is none. */
export async function firstRowOf(path: string, { bytes }: Place): Promise<string | null> {
  let text = '';
  for await (const chunk of bytesOf(path, 0, Math.min(bytes, LONGEST_BEGINNING)))
    text += chunk.toString('latin1');
  const end = text.indexOf('\n');
  return bytes === 0 ? null : text.slice(0, end === -1 ? text.length : end);
}

/**
 * The last of these places, in their order, up to which the file matches the proofs byte for byte. BEGINNING
 * when there is none.
 */
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

/**
 * The rows of a part, read back from disk. Throws Refused at the end when they are not the rows that were
 * proved.
 */
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

import { createReadStream } from 'node:fs';
import { open, truncate, type FileHandle } from 'node:fs/promises';
import { crc32 } from '../stream/crc32.ts';
import { Refused } from './failure.ts';
import { BEGINNING, type Place } from './place.ts';

const CHUNK_BYTES = 1024 * 1024;

/** The proved rows of a part, on disk, as they came. */
export class PartFile {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Opens it to go on behind a place; what stands behind that goes away. */
  static async open(path: string, { bytes }: Place): Promise<PartFile> {
    const handle = await open(path, 'a');
    await truncate(path, bytes);
    return new PartFile(handle);
  }

  append(chunks: readonly Buffer[]): Promise<void> {
    return this.#handle.writeFile(Buffer.concat(chunks));
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

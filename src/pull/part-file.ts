import { createReadStream } from 'node:fs';
import { open, rm, truncate, type FileHandle } from 'node:fs/promises';
import { crc32 } from '../stream/crc32.ts';
import { codeOf } from '../thrown.ts';
import { BEGINNING, LONGEST_BEGINNING, type ProvedPlace } from './proof.ts';
import { Refused } from './retry.ts';

/** The size of the pieces in which a file is read. Bytes. */
const CHUNK_BYTES = 1024 * 1024;
/** The size of the write buffer, in bytes. It keeps the memory for rows small. */
const BUFFER_BYTES = 256 * 1024;

/**
 * The rows of a part, on disk, as they came. The file also holds the rows after the last proof, so that
 * memory need not hold them. The next proof confirms them. A cut removes them, and after a kill the next run
 * does.
 */
export class PartFile {
  readonly path: string;
  readonly #handle: FileHandle;
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #filled = 0;
  #place: ProvedPlace;

  private constructor(path: string, handle: FileHandle, place: ProvedPlace) {
    this.path = path;
    this.#handle = handle;
    this.#place = place;
  }

  /**
   * Opens the file at the last of these places, in their order, up to which it matches the proofs byte for
   * byte. Anything after that place is removed.
   */
  static async open(path: string, places: readonly ProvedPlace[]): Promise<PartFile> {
    return PartFile.at(path, await lastTruePlace(path, places));
  }

  /** Opens the file at a place that it matches. Anything after it is removed. */
  static async at(path: string, place: ProvedPlace): Promise<PartFile> {
    const handle = await open(path, 'a');
    await truncate(path, place.bytes);
    return new PartFile(path, handle, place);
  }

  /** All rows up to here are proved. */
  get place(): ProvedPlace {
    return this.#place;
  }

  /** The beginning of the first row (see Proof). null when no row is proved. */
  async firstRow(): Promise<string | null> {
    const { bytes } = this.#place;
    if (bytes === 0) return null;
    let text = '';
    for await (const chunk of bytesOf(this.path, 0, Math.min(bytes, LONGEST_BEGINNING)))
      text += chunk.toString('latin1');
    const end = text.indexOf('\n');
    return end === -1 ? text : text.slice(0, end);
  }

  /** Appends rows that are not proved yet. */
  async append(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const copied = bytes.copy(this.#buffer, this.#filled, at);
      this.#filled += copied;
      at += copied;
      if (this.#filled === this.#buffer.length) await this.#flush();
    }
  }

  /** Writes the appended rows to the file, calls `record`, and moves to the place that is proved now. */
  async prove(place: ProvedPlace, record: () => Promise<void>): Promise<void> {
    await this.#flush();
    await record();
    this.#place = place;
  }

  /** Removes the rows that are not proved. */
  async takeBack(): Promise<void> {
    this.#filled = 0;
    await this.#handle.truncate(this.#place.bytes);
  }

  /** The proved rows, read back from disk. Throws Refused at the end when they are not those that were proved. */
  async *proved(): AsyncGenerator<Buffer, void, undefined> {
    const { bytes, crc32: proved } = this.#place;
    let [length, crc] = [0, 0];
    for await (const chunk of bytesOf(this.path, 0, bytes)) {
      crc = crc32(chunk, crc);
      length += chunk.length;
      yield chunk;
    }
    if (length !== bytes || crc !== proved)
      throw new Refused(`${this.path} does not hold what was written to it: another pull may be using it`);
  }

  /** Resolves when what was proved is on disk. */
  async sync(): Promise<void> {
    await this.#handle.datasync();
  }

  /** Closes the file after everything is synchronized to disk. */
  async close(): Promise<void> {
    try {
      await this.#handle.sync();
    } finally {
      await this.#handle.close();
    }
  }

  remove(): Promise<void> {
    return rm(this.path, { force: true });
  }

  async #flush(): Promise<void> {
    await this.#handle.writeFile(this.#buffer.subarray(0, this.#filled));
    this.#filled = 0;
  }
}

/** The last of these places, in their order, up to which a file matches the proofs byte for byte. */
export async function lastTruePlace(path: string, places: readonly ProvedPlace[]): Promise<ProvedPlace> {
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

/** Part of a file. Empty when the file does not exist. */
async function* bytesOf(path: string, from: number, to: number): AsyncGenerator<Buffer, void, undefined> {
  if (to <= from) return;
  try {
    const stream = createReadStream(path, { start: from, end: to - 1, highWaterMark: CHUNK_BYTES });
    yield* stream as AsyncIterable<Buffer>;
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** Whether an error says that a file does not exist. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT';
}

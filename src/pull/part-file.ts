import { createReadStream, writeFileSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { crc32 } from '../pipeline/crc32.ts';
import type { Copy } from './copy.ts';
import { BEGINNING, LONGEST_BEGINNING, type ProvedPlace } from './proof.ts';
import { Refusal } from './retry.ts';
import { isMissing } from './state.ts';

/** The size of the pieces in which a file is read. Bytes. */
const CHUNK_BYTES = 1024 * 1024;

/** Writes down that the rows of a file up to a place are proved. The rows were written before. */
type Recorder = (place: ProvedPlace, file: FileHandle) => Promise<unknown>;

/**
 * Rows on disk, as they came. The file also holds the rows after the last proof, so that memory need not hold
 * them. The next proof confirms them. A cut removes them, and after a kill the next run does.
 */
export interface PartFile extends Copy {
  /** The beginning of the first row (see Proof). null when no row is proved. */
  firstRow(): Promise<string | null>;
  /** The proved rows, read back from disk. Throws Refusal at the end when they are not those that were proved. */
  proved(): AsyncGenerator<Buffer, void, undefined>;
}

/** Opens a file at a place that it matches. Anything after it is removed. */
export async function openPartFile(path: string, from: ProvedPlace, record: Recorder): Promise<PartFile> {
  const handle = await open(path, 'a');
  await handle.truncate(from.bytes);
  let place = from;
  const takeBack = () => handle.truncate(place.bytes);
  return {
    name: path,
    get place() {
      return place;
    },
    async firstRow() {
      const most = Math.min(place.bytes, LONGEST_BEGINNING);
      const beginning = await buffer(bytesOf(path, 0, most));
      return most === 0 ? null : beginning.toString('latin1').split('\n', 1).join('');
    },
    // It waits for the kernel's cache only, so that no row stays in memory.
    add: (bytes) => writeFileSync(handle.fd, bytes),
    async prove(next) {
      await record(next, handle);
      place = next;
    },
    takeBack,
    async *proved() {
      let length = 0;
      let crc = 0;
      for await (const chunk of bytesOf(path, 0, place.bytes)) {
        crc = crc32(chunk, crc);
        length += chunk.length;
        yield chunk;
      }
      if (length !== place.bytes || crc !== place.crc32)
        throw new Refusal(`${path} does not hold what was written to it: another pull may be using it`);
    },
    /** Resolves when what is proved is on disk, without the rest. */
    async close() {
      try {
        await takeBack();
        await handle.sync();
      } finally {
        await handle.close();
      }
    },
  };
}

/** The last of these places, in their order, up to which a file matches the proofs byte for byte. */
export async function lastTruePlace(path: string, places: readonly ProvedPlace[]): Promise<ProvedPlace> {
  let found = BEGINNING;
  let at = 0;
  let crc = 0;
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

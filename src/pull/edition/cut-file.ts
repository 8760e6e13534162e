import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { Cutter } from '../../base/edition/cut.ts';
import { isMissing } from '../state.ts';

/** How much is read of a file at once. Bytes. */
const READ_BYTES = 1024 * 1024;

/** A chunk that a file of rows has. */
export interface CutChunk {
  /** The SHA-256 of its rows. */
  readonly name: string;
  readonly path: string;
  readonly at: number;
  readonly rows: number;
  readonly bytes: number;
}

/** The chunks of a file of rows as NDJSON, by the rule of editions. There are none when the file is missing. */
export async function* cutFile(path: string, target: number): AsyncGenerator<CutChunk, void, undefined> {
  const size = (await stat(path).catch(unlessMissing))?.size ?? 0;
  if (size === 0) return;
  const cutter = new Cutter(target);
  let hash = createHash('sha256');
  let at = 0;
  const end = (bytes: number): CutChunk => {
    const chunk = { name: hash.digest('hex'), path, at, rows: cutter.rows, bytes };
    hash = createHash('sha256');
    at += bytes;
    return chunk;
  };
  for await (const piece of createReadStream(path, { highWaterMark: READ_BYTES }) as AsyncIterable<Buffer>)
    for (let from = 0; from < piece.length;) {
      const to = cutter.take(piece, from);
      hash.update(piece.subarray(from, to < 0 ? undefined : to));
      if (to < 0) break;
      yield end(cutter.bytes);
      from = to;
    }
  // The rest is the last chunk, or ends in a row that a kill has cut, which gives it a name that no chunk has.
  if (at < size) yield end(size - at);
}

/** The rows of a chunk, which may have changed since it was cut: its name is checked. null: it has. */
export async function readChunk({ path, at, bytes, name }: CutChunk): Promise<Buffer | null> {
  const file = await open(path, 'r');
  try {
    const rows = Buffer.allocUnsafe(bytes);
    let length = 0;
    for (let got = -1; got !== 0 && length < bytes; length += got)
      got = (await file.read(rows, length, bytes - length, at + length)).bytesRead;
    return createHash('sha256').update(rows).digest('hex') === name ? rows : null;
  } finally {
    await file.close();
  }
}

function unlessMissing(error: unknown): null {
  if (isMissing(error)) return null;
  throw error;
}

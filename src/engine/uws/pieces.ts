import { CORK_BYTES, corked } from '../cork.ts';
import type { HttpResponse } from './library.ts';

/** Bytes around a chunk: CR LF, four hex digits, CR LF, and some spare room. */
const FRAME_BYTES = 16;
/** The most bytes of a piece behind a flush, with its frame. It shares the cork of the last chunk, and so its packet. */
const BEHIND_BYTES = 32;

export type BodyResponse = Pick<
  HttpResponse,
  'cork' | 'write' | 'end' | 'tryEnd' | 'getWriteOffset' | 'pause' | 'resume'
>;

/** Status and headers. */
export interface BodyHead {
  /** The most bytes that `write` writes. */
  readonly bytes: number;
  /** Called in the cork of the first piece. */
  readonly write: () => void;
}

/** What became of bytes that were put on the wire. */
export interface PassedBytes {
  /** How many they are. They are never sent again. */
  readonly bytes: number;
  /** `blocked`: the socket did not take all. `ended`: they were the last ones, and the response is no longer valid. */
  readonly left: 'flowing' | 'blocked' | 'ended';
}

/**
 * Writes the first of these bytes as a chunk, in one cork, and `behind` it when they are all. What the socket did not take
 * is buffered by uWebSockets.js.
 */
export function writeChunk(
  response: Pick<BodyResponse, 'cork' | 'write'>,
  head: BodyHead | null,
  bytes: Uint8Array,
  behind: Uint8Array,
): PassedBytes {
  const piece = bytes.subarray(0, CORK_BYTES - (head?.bytes ?? 0) - FRAME_BYTES - BEHIND_BYTES);
  const isTaken = corked(response, () => {
    head?.write();
    const isTaken = response.write(piece);
    return behind.length > 0 && piece.length === bytes.length ? response.write(behind) : isTaken;
  });
  return { bytes: piece.length, left: isTaken ? 'flowing' : 'blocked' };
}

/** Sends bytes of a body of known length, of which some were sent before. What the socket does not take is not buffered. */
export function tryEnd(
  response: Pick<BodyResponse, 'cork' | 'tryEnd' | 'getWriteOffset'>,
  head: BodyHead | null,
  bytes: Uint8Array,
  { length, sent }: { readonly length: number; readonly sent: number },
): PassedBytes {
  const [, isDone] = corked(response, () => {
    head?.write();
    return response.tryEnd(bytes, length);
  });
  if (isDone) return { bytes: bytes.length, left: 'ended' };
  const taken = response.getWriteOffset() - sent;
  return { bytes: taken, left: taken < bytes.length ? 'blocked' : 'flowing' };
}

/** Joins what waits and a chunk. Bytes written from it are copied before any other code can use it. */
const scratch = Buffer.allocUnsafeSlow(CORK_BYTES);

/** Bytes that wait and those behind them, as one piece that holds until the next call. */
export function joined(waiting: Uint8Array, chunk: Uint8Array): Uint8Array {
  if (waiting.length === 0) return chunk;
  const length = waiting.length + chunk.length;
  if (length > scratch.length) return Buffer.concat([waiting, chunk]);
  scratch.set(waiting);
  scratch.set(chunk, waiting.length);
  return scratch.subarray(0, length);
}

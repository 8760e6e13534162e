import { provedPieces, type Piece } from './answer.ts';
import { Backoff, REAL_CLOCK, type Clock } from './backoff.ts';
import type { Compression } from './decode.ts';
import { Interrupted } from './failure.ts';
import { httpSource, type Source } from './http.ts';
import { BEGINNING, isComplete, urlFrom, type Place } from './place.ts';

export { Interrupted, Refused } from './failure.ts';
export { BEGINNING, type Place } from './place.ts';
export type { Piece } from './answer.ts';
export type { Clock } from './backoff.ts';
export type { Compression } from './decode.ts';

export interface PullOptions {
  /** Where an earlier pull of the same URL came to; the beginning by default. */
  readonly from?: Place;
  /** On the way; `br` by default. */
  readonly compression?: Compression;
  /** An API key. */
  readonly key?: string | null;
  readonly signal?: AbortSignal;
  /** Gives up after so long without anything new. Milliseconds; 5 min by default. */
  readonly retryForMs?: number;
  /** A connection that is silent for so long is cut. Milliseconds; 60 s by default. */
  readonly idleMs?: number;
  /** Told of each cut, and how long is waited before the next attempt. */
  readonly onInterrupted?: (failure: Interrupted, waitMs: number) => void;
  readonly source?: Source;
  readonly clock?: Clock;
}

const RETRY_FOR_MS = 300_000;
const IDLE_MS = 60_000;
const NEVER = new AbortController().signal;

/**
 * The rows of an /items/stream URL as NDJSON, in pieces that are proved by rows, bytes and CRC-32, each row once, in order, through
 * whatever cuts: it asks again from the last proof. Returns when the set is whole. The place of the last piece is where another
 * pull goes on (`from`). At most one piece is held: 10,000 rows, 16 MiB or 5 s, whatever comes first.
 *
 * Rejects with Refused when the server says no, with the last Interrupted after `retryForMs` without anything new, with the
 * signal's reason once that is aborted.
 */
export async function* pull(
  url: URL | string,
  options: PullOptions = {},
): AsyncGenerator<Piece, void, undefined> {
  const { source = httpSource, clock = REAL_CLOCK, retryForMs = RETRY_FOR_MS, signal = NEVER } = options;
  const { compression = 'br', key = null, idleMs = IDLE_MS } = options;
  const asking = { compression, key, idleMs, signal };
  const whole = new URL(url);
  const { onInterrupted = () => undefined } = options;
  const backoff = new Backoff({ clock, retryForMs, signal, onInterrupted });
  let place = options.from ?? BEGINNING;
  while (!isComplete(whole, place)) {
    try {
      const bytes = await source(urlFrom(whole, place), 'application/x-ndjson', asking);
      for await (const piece of provedPieces(bytes, place)) {
        place = piece.place;
        backoff.reset();
        yield piece;
      }
      if (!isComplete(whole, place)) throw new Interrupted('the connection was cut');
    } catch (error) {
      await backoff.after(error);
    }
  }
}

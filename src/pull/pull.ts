import { provedRows, type ProvingOptions } from './attempts.ts';
import { REAL_CLOCK } from './backoff.ts';
import { Blocks } from './blocks.ts';
import { httpSource } from './http.ts';
import { BEGINNING, type Place } from './place.ts';

export { Interrupted, Refused } from './failure.ts';
export { BEGINNING, type Place } from './place.ts';
export type { Clock } from './backoff.ts';
export type { Compression } from './decode.ts';

/** Whole rows that a control line has proved, and the place behind them. */
export interface Piece {
  readonly chunks: readonly Buffer[];
  readonly rows: number;
  readonly bytes: number;
  readonly place: Place;
}

/** The options of a pull, as ProvingOptions. Every option has a default. */
export type PullOptions = Partial<Omit<ProvingOptions, 'firstRow'>>;

const NEVER = new AbortController().signal;

/** The default options of a pull. */
export const DEFAULTS: ProvingOptions = {
  from: BEGINNING,
  firstRow: null,
  compression: 'br',
  key: null,
  signal: NEVER,
  retryForMs: 300_000,
  idleMs: 60_000,
  onInterrupted: () => undefined,
  source: httpSource,
  clock: REAL_CLOCK,
};

/**
 * The rows of an /items/stream URL as NDJSON, in pieces that are proved by rows, bytes and CRC-32. Each row
 * comes once, in order, however often the connection is cut: the pull requests the rest from the last proof.
 * Returns when the set is whole. Another pull can continue from the place of the last piece (`from`). The
 * pull holds at most one piece: 10,000 rows, 16 MiB or 5 s, whatever comes first, and never more than 128
 * MiB.
 *
 * Rejects with Refused when the server refuses or sends what no sluice server sends, with the last
 * Interrupted after `retryForMs` without another proved row, and with the signal's reason once that is
 * aborted.
 */
export async function* pull(
  url: URL | string,
  options: PullOptions = {},
): AsyncGenerator<Piece, void, undefined> {
  const held = new Blocks();
  for await (const step of provedRows(new URL(url), { ...DEFAULTS, ...options })) {
    if (step.kind === 'rows') held.add(step.bytes);
    else if (step.kind === 'void') held.take();
    else yield { chunks: held.take(), rows: step.rows, bytes: step.bytes, place: step.place };
  }
}

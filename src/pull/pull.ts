import { HeldLines } from './copy.ts';
import { getContent } from './http.ts';
import { BEGINNING, type ProvedPlace } from './proof.ts';
import { provedRows, type ProvingOptions } from './proved-rows.ts';
import { REAL_CLOCK } from './retry.ts';

export type { Compression } from './proved-rows.ts';
export { BEGINNING, type ProvedPlace } from './proof.ts';
export { Interruption, Refusal, type Clock } from './retry.ts';

/** Whole rows that a control line has proved, and the place after them. */
export interface Piece {
  readonly chunks: readonly Buffer[];
  readonly rows: number;
  readonly bytes: number;
  readonly place: ProvedPlace;
}

/** The options of a pull. Every option has a default. */
export type PullOptions = Partial<Omit<ProvingOptions, 'firstRow' | 'follow' | 'getContent'>>;

export const DEFAULTS: ProvingOptions = {
  from: BEGINNING,
  firstRow: null,
  follow: false,
  getContent,
  compression: 'br',
  key: null,
  signal: new AbortController().signal,
  retryForMs: 300_000,
  idleMs: 60_000,
  onInterrupted: () => undefined,
  clock: REAL_CLOCK,
};

/**
 * The rows of a stream's URL as NDJSON, in pieces that are proved by rows, bytes and CRC-32. Each row comes once, in order,
 * however often the connection is cut. Returns when the set is whole. Another pull can continue from the place of the last
 * piece (`from`). The pull holds at most one piece: 10,000 rows, 16 MiB or 5 s, and never more than 128 MiB.
 *
 * Rejects with Refusal when the server refuses or sends what no sluice server sends, with the last Interruption after
 * `retryForMs` without another proved row, and with the signal's reason once that is aborted.
 */
export async function* pull(
  url: URL | string,
  options: PullOptions = {},
): AsyncGenerator<Piece, void, undefined> {
  const held = new HeldLines();
  for await (const step of provedRows(new URL(url), { ...DEFAULTS, ...options })) {
    if (step.kind === 'rows') held.add(step.bytes);
    else if (step.kind !== 'proof') held.take();
    else yield { chunks: [held.take()], rows: step.rows, bytes: step.bytes, place: step.place };
  }
}

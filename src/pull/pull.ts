import { answerOf } from './answer.ts';
import { getContent, type GetContent, type RequestOptions } from './http.ts';
import type { RowBytes } from './lines.ts';
import { BEGINNING, type Proof, type ProvedPlace } from './proof.ts';
import { Backoff, Interrupted, REAL_CLOCK, Refused, type BackoffOptions } from './retry.ts';

export { BEGINNING, type ProvedPlace } from './proof.ts';
export { Interrupted, Refused, type Clock } from './retry.ts';
export type { Compression } from './http.ts';

/** Whole rows that a control line has proved, and the place after them. */
export interface Piece {
  readonly chunks: readonly Buffer[];
  readonly rows: number;
  readonly bytes: number;
  readonly place: ProvedPlace;
}

export interface ProvingOptions extends BackoffOptions, RequestOptions {
  /** The place that an earlier pull of the same URL reached. */
  readonly from: ProvedPlace;
  /** The beginning of the first row of the whole pull (see Proof). null when it is unknown. */
  readonly firstRow: string | null;
  /** How requests are sent. */
  readonly getContent: GetContent;
}

/** The options of a pull. Every option has a default. */
export type PullOptions = Partial<Omit<ProvingOptions, 'firstRow' | 'getContent'>>;

/** The default options of a pull. */
export const DEFAULTS: ProvingOptions = {
  from: BEGINNING,
  firstRow: null,
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
 * The rows of a stream's URL as NDJSON, in pieces that are proved by rows, bytes and CRC-32. Each row
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

/** The rows since the last proof are void: the answer was cut before the next proof. */
export interface Void {
  readonly kind: 'void';
}

/**
 * The rows of a stream's URL as they come, the proofs of them, and notices that void them. After a cut
 * it requests the rest from the last proof. Returns when the set is whole. Holds no rows. Rejects as `pull`
 * does.
 */
export async function* provedRows(
  url: URL,
  options: ProvingOptions,
): AsyncGenerator<RowBytes | Proof | Void, void, undefined> {
  const backoff = new Backoff(options);
  const limit = limitOf(url);
  let { from: place, firstRow } = options;
  while (!isWhole(place, limit)) {
    let isVoid = false;
    try {
      const from = place;
      for await (const step of answerOf(urlFrom(url, from), from, backoff, options)) {
        isVoid = step.kind === 'rows';
        if (step.kind === 'proof') {
          checkProof(step, { from, last: place, firstRow, limit });
          if (from.rows === 0) firstRow = step.firstRow;
          if (step.rows > 0) backoff.reset();
          place = step.place;
          if (step.rows === 0 && !place.ended) continue; // these rows were proved before
        }
        yield step;
      }
      if (!isWhole(place, limit)) throw new Interrupted('the connection was cut');
    } catch (error) {
      await backoff.after(error);
      if (isVoid) yield { kind: 'void' };
    }
  }
}

interface Expected {
  /** The place where the answer begins. */
  readonly from: ProvedPlace;
  /** The place of the last proof. */
  readonly last: ProvedPlace;
  readonly firstRow: string | null;
  readonly limit: number | null;
}

/** Throws Refused when the server does not follow the request. A proof covers only an answer, not the set. */
function checkProof(proof: Proof, { from, last, firstRow, limit }: Expected): void {
  const { rows, place } = proof;
  if (limit !== null && place.rows > limit)
    throw new Refused(`the server sent ${place.rows} rows although the limit is ${limit}`);
  if (from.rows > 0 && proof.firstRow !== '' && proof.firstRow === firstRow)
    throw new Refused('the server started over instead of continuing after the cursor');
  if (rows > 0 && last.cursor !== null && place.cursor === last.cursor && !place.ended)
    throw new Refused('the server sent more rows, but repeated its cursor');
}

/** The URL that requests the rows after a place. `limit` is reduced by the rows already pulled. */
function urlFrom(url: URL, { cursor, rows }: ProvedPlace): URL {
  const next = new URL(url);
  const { searchParams: query } = next;
  query.set('format', 'ndjson');
  query.set('checkpoints', 'true');
  if (cursor !== null) {
    query.delete('after');
    query.set('cursor', cursor);
  }
  const limit = limitOf(url);
  if (limit !== null) query.set('limit', String(limit - rows));
  return next;
}

/** The number of rows that a URL asks for. null for all rows. */
function limitOf(url: URL): number | null {
  const limit = url.searchParams.get('limit');
  return limit !== null && /^\d{1,15}$/.test(limit) ? Number(limit) : null;
}

/**
 * Whether the set is whole, or the limit is reached. The connection may have been cut after the last
 * checkpoint, before the end line.
 */
function isWhole({ rows, ended }: ProvedPlace, limit: number | null): boolean {
  return ended || (limit !== null && rows >= limit && rows > 0);
}

const BLOCK_BYTES = 64 * 1024;

/**
 * Stores bytes that come in pieces of any size as a few large blocks. A million tiny buffers would take far
 * more memory than their bytes.
 */
class Blocks {
  #full: Buffer[] = [];
  #block = Buffer.alloc(0);
  #filled = 0;

  add(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) {
      if (this.#filled === this.#block.length) this.#begin();
      const copied = bytes.copy(this.#block, this.#filled, at);
      this.#filled += copied;
      at += copied;
    }
  }

  /** Removes and returns the bytes added since the last call. */
  take(): Buffer[] {
    const taken = [...this.#full, this.#block.subarray(0, this.#filled)].filter(({ length }) => length > 0);
    this.#full = [];
    this.#block = Buffer.alloc(0);
    this.#filled = 0;
    return taken;
  }

  #begin(): void {
    if (this.#filled > 0) this.#full.push(this.#block);
    this.#block = Buffer.allocUnsafe(BLOCK_BYTES);
    this.#filled = 0;
  }
}

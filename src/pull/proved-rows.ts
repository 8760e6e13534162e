import { CHANGE_BEGINNINGS, LineReader, ROW_BEGINNINGS, type RowBytes } from './lines.ts';
import { BEGINNING, readAnswer, type Proof, type ProvedPlace } from './proof.ts';
import { countOf } from '../terminal/text.ts';
import { Backoff, Interruption, Refusal, type BackoffOptions } from './retry.ts';

/** The content codings of the transfer. `none` requests the bytes without a coding. */
export const COMPRESSIONS = ['br', 'gzip', 'none'] as const;
export type Compression = (typeof COMPRESSIONS)[number];

export interface RequestOptions {
  readonly compression: Compression;
  /** An API key, sent as `Authorization: Bearer`. null for none. */
  readonly key: string | null;
  readonly signal: AbortSignal;
}

export interface ProvingOptions extends BackoffOptions, RequestOptions {
  /** The place that an earlier pull of the same URL reached. */
  readonly from: ProvedPlace;
  /** The beginning of the first row of the whole pull (see Proof). null when it is unknown. */
  readonly firstRow: string | null;
  /** Whether the changes of the set come after its rows. */
  readonly follow: boolean;
  readonly getContent: GetContent;
}

/** How requests are sent: see `getContent` of http.ts. */
export type GetContent = (
  url: URL,
  accept: string,
  options: RequestOptions,
) => Promise<AsyncIterable<Uint8Array>>;

/**
 * What makes rows void. `void`: those since the last proof, because the answer was cut before the next one. `restart`: all
 * so far, because the server no longer has the changes since the last place, as `reason` says; all rows follow again.
 */
type VoidEvent = { readonly kind: 'void' } | { readonly kind: 'restart'; readonly reason: string };
export type ProvedStep = RowBytes | Proof | VoidEvent;

/** The status of changes that are no longer kept, and of a collection that was replaced. */
const GONE = 410;

/**
 * The rows of a stream's URL as they come, the proofs of them, and notices that void them. After a cut it requests the rest
 * from the last proof. Returns when the set is whole. Rejects as `pull` does. With `follow`, lines of changed and removed
 * rows come after the rows of the set, and it never ends by itself.
 */
export async function* provedRows(
  url: URL,
  options: ProvingOptions,
): AsyncGenerator<ProvedStep, void, undefined> {
  const { follow, getContent } = options;
  const backoff = new Backoff(options);
  const limit = limitOf(url);
  let { from: place, firstRow } = options;
  while (follow || !isWhole(place, limit)) {
    const from = place;
    let isVoid = false;
    let goesOn = false;
    try {
      const to = follow ? feedFrom(url, from) : rowsFrom(url, from);
      const content = backoff.content((signal) =>
        getContent(to, 'application/x-ndjson', { ...options, signal }),
      );
      const lines = new LineReader(follow ? CHANGE_BEGINNINGS : ROW_BEGINNINGS);
      for await (const step of readAnswer(content, from, lines)) {
        isVoid = step.kind === 'rows';
        if (step.kind === 'proof') {
          if (!follow) checkSet(step, from, place, firstRow, limit);
          else if (step.place.cursor === null) throw new Refusal('the server sent a place without a cursor');
          if (from.rows === 0) firstRow = step.firstRow;
          if (step.rows > 0 || (follow && step.upToDate)) backoff.reset(); // while nothing changes, only places come
          goesOn = step.more && step.place.cursor !== place.cursor;
          place = step.place;
          if (step.rows === 0 && !place.ended && !follow) continue; // these rows were proved before
        }
        const comeBack = backoff.leave();
        yield step;
        if (step.rows > 0 || isVoid) comeBack();
      }
      if (!goesOn && (follow || !isWhole(place, limit))) throw new Interruption('the connection was cut');
    } catch (error) {
      if (follow && error instanceof Refusal && error.status === GONE && place.cursor !== null) {
        place = BEGINNING;
        yield { kind: 'restart', reason: error.message };
        continue;
      }
      await backoff.after(error);
      if (isVoid) yield { kind: 'void' };
    }
  }
}

/**
 * Throws Refusal when the server does not follow the request: a proof covers only an answer, not the set. `from`: where the
 * answer begins. `last`: the place of the last proof.
 */
function checkSet(
  proof: Proof,
  from: ProvedPlace,
  last: ProvedPlace,
  firstRow: string | null,
  limit: number | null,
): void {
  const { rows, place } = proof;
  if (limit !== null && place.rows > limit)
    throw new Refusal(`the server sent ${countOf(place.rows, 'row')} although the limit is ${limit}`);
  if (from.rows > 0 && proof.firstRow !== '' && proof.firstRow === firstRow)
    throw new Refusal('the server started over instead of continuing after the cursor');
  if (rows > 0 && last.cursor !== null && place.cursor === last.cursor && !place.ended)
    throw new Refusal('the server sent more rows, but repeated its cursor');
}

/** The URL that requests the rows after a place. `limit` is reduced by the rows already pulled. */
function rowsFrom(url: URL, { cursor, rows }: ProvedPlace): URL {
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

/** The URL that requests the rows and then their changes after a place, or the changes alone. */
function feedFrom(url: URL, { cursor }: ProvedPlace): URL {
  const next = new URL(url);
  next.searchParams.set('follow', 'true');
  if (cursor !== null) next.searchParams.set(next.pathname.endsWith('/changes') ? 'since' : 'cursor', cursor);
  return next;
}

function limitOf(url: URL): number | null {
  const limit = url.searchParams.get('limit');
  return limit !== null && /^\d{1,15}$/.test(limit) ? Number(limit) : null;
}

/** Whether the set is whole, or the limit is reached: a cut may come between the last checkpoint and the end line. */
function isWhole({ rows, ended }: ProvedPlace, limit: number | null): boolean {
  return ended || (limit !== null && rows >= limit && rows > 0);
}

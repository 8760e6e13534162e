import { readAnswer, type Proof, type Unproved } from './answer.ts';
import { Backoff, type Attempt, type BackoffOptions } from './backoff.ts';
import { Interrupted, Refused } from './failure.ts';
import type { Asking, Source } from './http.ts';
import { isComplete, limitOf, urlFrom, type Place } from './place.ts';

export interface ProvingOptions extends Omit<BackoffOptions, 'idleMs'>, Asking {
  /** The place that an earlier pull of the same URL reached. */
  readonly from: Place;
  /** The beginning of the first row of the whole pull (see Proof). null when it is unknown. */
  readonly firstRow: string | null;
  readonly source: Source;
}

/** The rows since the last proof are void: the answer was cut before the next proof. */
export interface Void {
  readonly kind: 'void';
}

/**
 * The rows of an /items/stream URL as they come, the proofs of them, and notices that void them. After a cut
 * it requests the rest from the last proof. Returns when the set is whole. Holds no rows. Rejects as `pull`
 * does.
 */
export async function* provedRows(
  whole: URL,
  options: ProvingOptions,
): AsyncGenerator<Unproved | Proof | Void, void, undefined> {
  const backoff = new Backoff(options);
  let { from: place, firstRow } = options;
  while (!isComplete(whole, place)) {
    let isVoid = false;
    try {
      const from = place;
      for await (const step of answered(urlFrom(whole, from), from, backoff.attempt(), options)) {
        isVoid = step.kind === 'rows';
        if (step.kind === 'proof') {
          checkProof(step, { whole, from, last: place, firstRow });
          if (from.rows === 0) firstRow = step.firstRow;
          if (step.rows > 0) backoff.reset();
          place = step.place;
          if (step.rows === 0 && !place.ended) continue; // these rows were proved before
        }
        yield step;
      }
      if (!isComplete(whole, place)) throw new Interrupted('the connection was cut');
    } catch (error) {
      await backoff.after(error);
      if (isVoid) yield { kind: 'void' };
    }
  }
}

/** The rows and proofs of one answer. */
async function* answered(
  url: URL,
  from: Place,
  attempt: Attempt,
  { source, ...asking }: ProvingOptions,
): AsyncGenerator<Unproved | Proof, void, undefined> {
  const { signal } = attempt;
  const bytes = await attempt.wait(() => source(url, 'application/x-ndjson', { ...asking, signal }));
  yield* readAnswer(waitedFor(bytes, attempt), from);
}

/** The same bytes. The time until each chunk arrives counts as waiting. */
async function* waitedFor(
  bytes: AsyncIterable<Buffer>,
  attempt: Attempt,
): AsyncGenerator<Buffer, void, undefined> {
  const chunks = bytes[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await attempt.wait(() => chunks.next());
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await chunks.return?.();
  }
}

interface Expected {
  readonly whole: URL;
  /** The place where the answer begins. */
  readonly from: Place;
  /** The place of the last proof. */
  readonly last: Place;
  readonly firstRow: string | null;
}

/** Throws Refused when the server does not follow the request. A proof covers only an answer, not the set. */
function checkProof(
  { rows, place, firstRow: begins }: Proof,
  { whole, from, last, firstRow }: Expected,
): void {
  const limit = limitOf(whole);
  if (limit !== null && place.rows > limit)
    throw new Refused(`the server sends ${place.rows} rows where limit is ${limit}`);
  if (from.rows > 0 && begins !== '' && begins === firstRow)
    throw new Refused('the server begins again instead of going on behind the cursor');
  if (rows > 0 && last.cursor !== null && place.cursor === last.cursor && !place.ended)
    throw new Refused('the server sends rows, but its cursor does not move on');
}

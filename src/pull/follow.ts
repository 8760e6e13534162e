import { answerOf } from './answer.ts';
import { CHANGE_BEGINNINGS, LineReader, type RowBytes } from './lines.ts';
import { BEGINNING, type Proof, type ProvedPlace } from './proof.ts';
import type { ProvingOptions, Void } from './pull.ts';
import { Backoff, Interrupted, Refused } from './retry.ts';

/** The server no longer has the changes since the last place. The copy is void: all rows follow again. */
export interface Restart {
  readonly kind: 'restart';
  /** What the server said. */
  readonly reason: string;
}

/** The status of changes that are no longer kept, and of a collection that was replaced. */
const GONE = 410;

/**
 * The rows of a stream and then their changes, as they come: lines of rows and of removals, the proofs of them, and
 * notices that void them. After a cut it requests the rest from the last proof. Applied by id, in their order, they make
 * a copy of the set. It never ends by itself. Rejects as `pull` does.
 */
export async function* followed(
  url: URL,
  options: Omit<ProvingOptions, 'firstRow'>,
): AsyncGenerator<RowBytes | Proof | Void | Restart, void, undefined> {
  const backoff = new Backoff(options);
  let place = options.from;
  for (;;) {
    let isVoid = false;
    let goesOn = false;
    try {
      const lines = new LineReader(CHANGE_BEGINNINGS);
      for await (const step of answerOf(urlFrom(url, place), place, backoff, options, lines)) {
        isVoid = step.kind === 'rows';
        if (step.kind === 'proof') {
          if (step.place.cursor === null) throw new Refused('the server sent a place without a cursor');
          if (step.rows > 0 || step.upToDate) backoff.reset(); // while nothing changes, only places come
          goesOn = step.more && step.place.cursor !== place.cursor;
          place = { ...step.place, ended: false };
        }
        yield step;
      }
      if (!goesOn) throw new Interrupted('the connection was cut');
    } catch (error) {
      if (error instanceof Refused && error.status === GONE && place.cursor !== null) {
        place = BEGINNING;
        yield { kind: 'restart', reason: error.message };
        continue;
      }
      await backoff.after(error);
      if (isVoid) yield { kind: 'void' };
    }
  }
}

function urlFrom(url: URL, { cursor }: ProvedPlace): URL {
  const next = new URL(url);
  next.searchParams.set('follow', 'true');
  if (cursor !== null) next.searchParams.set('cursor', cursor);
  return next;
}

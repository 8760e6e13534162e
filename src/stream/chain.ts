import { setImmediate as turn } from 'node:timers/promises';
import { orRelease, type Batch } from '../store/batch.ts';
import type { Bookmark } from '../store/bookmark.ts';
import type { ChainReader, Plan, Size } from '../store/store.ts';

/** What a batch aims at while the reader is fast: large enough to cost little each, small enough to hold two a stream. */
const TARGET_BYTES = 768 * 1024;
const MOST_ROWS = 16_384;

/** The size of a stream's first batch: small, so that the first row leaves at once. What follows lets others go first. */
export const FIRST_BATCH: Size = { rows: 250, bytes: TARGET_BYTES };

/** The size of the first batch of a chain of at most so many rows. */
export function firstSize(rows: number): Size {
  return { ...FIRST_BATCH, rows: Math.min(FIRST_BATCH.rows, rows) };
}

/**
 * Keyset chain: the batches of a plan from `first` on, each read from the bookmark of the one before, the next one
 * on its way while the caller works on this one. Between two reads nothing is open in the store. No batch is older than
 * the first: a row that has not changed since then is in the batch where it belongs, whoever is asked for that. All are of
 * the first one's collection. A batch is yielded when the store has confirmed, after it was read, what it was read by: so
 * neither the end nor any place in between is reached with rows missing.
 *
 * `rows` bounds how many rows come, those of `first` included. Each batch yielded belongs to the caller, who releases
 * it; `first` too, once it was yielded. Rejects with what `read` rejects with, or the signal's reason.
 */
export async function* chain(
  items: ChainReader,
  plan: Plan,
  first: Batch,
  rows: number,
  signal: AbortSignal,
): AsyncGenerator<Batch, void, undefined> {
  const rest = planBehind(plan, first);
  let left = rows - first.rows;
  let batch = first;
  let ahead: Promise<Batch> | null = null;
  try {
    for (;;) {
      ahead =
        batch.more && batch.last && left > 0
          ? items.read(rest, { after: batch.last }, sizeAfter(batch, left), signal)
          : null;
      // Its failure is met at the await below; until then nobody waits for it, which Node would call unhandled.
      ahead?.catch(() => undefined);
      // A read asks in a later turn of the microtask queue. The caller's work would be before it, and they would never overlap.
      if (ahead) await turn();
      await orRelease(batch, () => items.confirm(batch, rest, signal));
      yield batch;
      if (!ahead) return;
      batch = await ahead;
      ahead = null;
      left -= batch.rows;
    }
  } finally {
    ahead?.then(
      (unused) => unused.release(),
      () => undefined, // the caller has left: what it would have read is nobody's concern
    );
  }
}

/** The plan for what is read behind the first batch of a chain: not older than that, and of the same collection. */
export function planBehind(plan: Plan, { asOf, identity }: Pick<Batch, 'asOf' | 'identity'>): Plan {
  const { since = asOf, identity: own = identity } = plan;
  return { ...plan, ...(since !== undefined && { since }), ...(own !== undefined && { identity: own }) };
}

/** The chain that begins behind a bookmark; `rows` bounds how many come. */
export async function* chainAfter(
  items: ChainReader,
  plan: Plan,
  after: Bookmark,
  rows: number,
  signal: AbortSignal,
): AsyncGenerator<Batch, void, undefined> {
  if (rows <= 0) return;
  yield* chain(items, plan, await items.read(plan, { after }, firstSize(rows), signal), rows, signal);
}

function sizeAfter(batch: Batch, left: number): Size {
  const rowBytes = batch.length / batch.rows;
  const rows = Math.min(left, MOST_ROWS, Math.max(1, Math.floor(TARGET_BYTES / rowBytes)));
  return { rows, bytes: TARGET_BYTES, patient: true };
}

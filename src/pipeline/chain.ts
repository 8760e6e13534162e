import { setImmediate as turn } from 'node:timers/promises';
import { orRelease, type Batch, type ReadBatch } from '../store/batch.ts';
import type { Bookmark } from '../store/bookmark.ts';
import type { RowReader, Plan, Size } from '../store/store.ts';

/** Bytes of a batch while the reader is fast. A batch then costs little, and a stream can hold two. */
const TARGET_BYTES = 768 * 1024;
const MOST_ROWS = 16_384;
/** How many times as large as the one before a batch may be. A slow reader that gives it back has then read little in vain. */
const GROWTH = 4;

/** The size of a stream's first batch: small, so that the first row leaves at once. Later reads let others go first. */
export const FIRST_BATCH: Size = { rows: 250, bytes: TARGET_BYTES };

/** The size of the first batch of a chain that goes on where another one ended. */
export const NEXT_BATCH: Size = { rows: MOST_ROWS, bytes: TARGET_BYTES, patient: true };

/** The size of the first batch of a chain of at most `rows` rows. */
export function firstSize(rows: number): Size {
  return { ...FIRST_BATCH, rows: Math.min(FIRST_BATCH.rows, rows) };
}

/**
 * Keyset chain: the batches of a plan from `first` on, each read from the bookmark of the one before. The next batch is
 * read while the caller works on this one, unless too many streams do so. Between two reads nothing is open in the
 * store. No batch is older than the first, so a row that has not changed since is in the batch where it belongs,
 * whichever member of the store answers. All are of the first one's collection. The store confirms what a batch was
 * read by before it is yielded, so no place is reached with rows missing.
 *
 * `rows` limits the rows, those of `first` included, and no batch is read any more when `isOver`. The caller releases
 * each batch that was yielded, `first` too. Rejects with what `read` or `confirm` rejects with, or with the signal's
 * reason.
 */
export async function* chain(
  items: RowReader,
  plan: Plan,
  first: ReadBatch,
  rows: number,
  signal: AbortSignal,
  isOver: () => boolean = () => false,
): AsyncGenerator<Batch, void, undefined> {
  const rest = planBehind(plan, first);
  let left = rows - first.rows;
  let batch = first;
  let ahead: Promise<ReadBatch> | null = null;
  try {
    for (;;) {
      const { more, last } = batch;
      const size = sizeAfter(batch, left);
      const goesOn = more && last && left > 0 && !isOver();
      const next = goesOn ? () => items.read(rest, { after: last }, size, signal) : null;
      ahead = next && items.mayReadAhead?.() !== false ? next() : null;
      // The await below handles a failure. Until then nothing awaits the promise, which Node would report as unhandled.
      ahead?.catch(() => undefined);
      // A read sends its request in a later turn of the microtask queue. Without this turn the caller's work would come
      // first, and the two would never overlap.
      if (ahead) await turn();
      await orRelease(batch, () => batch.confirm(signal));
      yield batch;
      if (!next) return;
      batch = await (ahead ?? next());
      ahead = null;
      left -= batch.rows;
    }
  } finally {
    ahead?.then(
      (unused) => unused.release(),
      () => undefined, // the caller has left: no one needs this batch or its failure
    );
  }
}

/** The plan for reads after the first batch of a chain: not older than that batch, and of the same collection. */
export function planBehind(plan: Plan, { asOf, identity }: Pick<Batch, 'asOf' | 'identity'>): Plan {
  const { since = asOf, identity: own = identity } = plan;
  if (since === plan.since && own === plan.identity) return plan;
  return { ...plan, ...(since !== undefined && { since }), ...(own !== undefined && { identity: own }) };
}

/** The chain that begins after a bookmark. `rows` limits the number of rows. */
export async function* chainAfter(
  items: RowReader,
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
  const fitting = Math.max(1, Math.floor(TARGET_BYTES / rowBytes));
  const rows = Math.min(left, MOST_ROWS, GROWTH * batch.rows, fitting);
  return { rows, bytes: TARGET_BYTES, patient: true };
}

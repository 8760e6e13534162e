import type { Batch } from '../store/batch.ts';
import type { FeedOptions } from './run-options.ts';
import { whenAborted } from './when-aborted.ts';

/**
 * A feed ends by itself when its time is up, or when the server stops. Only one whose read hangs has not done so this
 * much later. Milliseconds. The first is a part of the time that was left, below the margin of streams/max-time.ts.
 */
const graceOf = (left: number) => Math.min(1_500, (left * 3) / 16);
const STOP_GRACE_MS = 1_000;

/**
 * The batches of a feed. When its time is up, or the server stops, and the next batch does not come because a read of
 * the store hangs, `last` makes the last batch, and the read is aborted.
 */
export async function* inTime(
  batches: (signal: AbortSignal) => AsyncGenerator<Batch, void, undefined>,
  { end, now, stopping }: Pick<FeedOptions, 'end' | 'now' | 'stopping'>,
  signal: AbortSignal,
  last: () => Batch,
): AsyncGenerator<Batch, void, undefined> {
  const own = new AbortController();
  const abort = () => own.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort);
  const late = new Late();
  const left = end.endAt === undefined ? Infinity : Math.max(0, end.endAt - now());
  if (left < Infinity) late.after(left + graceOf(left));
  const stop = () => late.after(STOP_GRACE_MS);
  if (stopping.aborted) stop();
  const forget = whenAborted(stopping, stop);
  const source = batches(own.signal);
  let next: Promise<IteratorResult<Batch, void>> | null = null;
  try {
    for (;;) {
      next = source.next();
      const came = await late.orSooner(next);
      if (came === 'late') {
        yield last();
        return;
      }
      next = null;
      if (came.done === true) return;
      yield came.value;
    }
  } finally {
    signal.removeEventListener('abort', abort);
    forget();
    late.close();
    if (next) own.abort(new Error('the time of the feed is up'));
    next?.then(
      (unused) => unused.done !== true && unused.value.release(),
      () => undefined, // nobody needs this batch or its failure
    );
    // A generator returns when its read has ended. Nobody waits for one that does not heed its signal.
    const over = source.return();
    if (next) over.catch(() => undefined);
    else await over;
  }
}

/** A time that comes once. Waiting for it leaves nothing behind, however often one waits. */
class Late {
  readonly #timers = new Set<NodeJS.Timeout>();
  #wake: () => void = () => undefined;
  #isLate = false;

  after(ms: number): void {
    const timer = setTimeout(
      () => {
        this.#isLate = true;
        this.#wake();
      },
      Math.max(0, ms),
    );
    this.#timers.add(timer);
  }

  /** Resolves as `work` does, or with `late` when the time comes first. */
  orSooner<T>(work: Promise<T>): Promise<T | 'late'> {
    return new Promise((resolve, reject) => {
      this.#wake = () => resolve('late');
      work.then(resolve, reject);
      if (this.#isLate) setImmediate(this.#wake); // what is there already comes first
    });
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}

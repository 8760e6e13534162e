import type { Batch } from '../../store/batch.ts';
import { whenAborted } from './when-aborted.ts';

/** A feed ends by itself when the server stops. Only one whose read hangs has not done so this much later. Milliseconds. */
const GRACE_MS = 1_000;

/**
 * The batches of a feed. When the server stops and the next batch does not come because a read of the store hangs,
 * `last` makes the last batch, and the read is aborted.
 */
export async function* untilStopped(
  batches: (signal: AbortSignal) => AsyncGenerator<Batch, void, undefined>,
  stopping: AbortSignal,
  signal: AbortSignal,
  last: () => Batch,
): AsyncGenerator<Batch, void, undefined> {
  const own = new AbortController();
  const abort = () => own.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort);
  const late = new Late();
  const stop = () => late.begin();
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
    if (next) own.abort(new Error('the server stops'));
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

/** GRACE_MS after its beginning. Waiting for it leaves nothing behind, however often one waits. */
class Late {
  #timer: NodeJS.Timeout | undefined;
  #wake: () => void = () => undefined;
  #isLate = false;

  begin(): void {
    this.#timer = setTimeout(() => {
      this.#isLate = true;
      this.#wake();
    }, GRACE_MS);
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
    clearTimeout(this.#timer);
  }
}

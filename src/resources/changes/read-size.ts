import type { Batch } from '../../store/batch.ts';
import { rowsOfSlice } from '../../pipeline/checkpoints.ts';

const [FIRST_KEYS, MOST_KEYS] = [250, 1_000];

/**
 * How many keys a feed reads at a time: as many as its reader takes in a moment, so that a checkpoint follows soon. Only
 * the time of the reader itself counts. A server that serves a thousand others meanwhile would otherwise read one key at
 * a time in the end, and be slower still.
 */
export class ReadSize {
  most = FIRST_KEYS;
  readonly #now: () => number;
  #takenMs = 0;

  /** `now`: a clock in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Gives a batch to the reader. */
  *given(batch: Batch): Generator<Batch, void, undefined> {
    const begun = this.#now();
    yield batch;
    this.#takenMs += this.#now() - begun;
  }

  /** The reader has taken all rows of a read. */
  delivered(keys: number): void {
    if (keys > 0) this.most = Math.min(MOST_KEYS, rowsOfSlice(keys, this.#takenMs, this.most));
    this.#takenMs = 0;
  }
}

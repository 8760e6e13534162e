import type { Batch } from '../batch.ts';
import type { Size } from '../store.ts';

/**
 * While the batches of all streams hold less than this many bytes, a stream reads ahead, goes on, and begins. Two dozen
 * batches of full size keep any store busy. First batches and looks for changes are small, and need not wait for those.
 */
const AHEAD = 16 << 20;
const NEXT = 24 << 20;
const FIRST = 32 << 20;
/** The size of a row until its batch has come, in bytes. */
const ROW_BYTES = 256;

/**
 * Turns to read, first come, first served: what bounds the memory of all streams of a process. No stream waits while it
 * holds a batch, and one whose client takes nothing gives it back (`Batch.isAwaited`). So each wait ends.
 */
export class ReadTurns {
  #held = 0;
  /** The reads that wait, and below how many bytes each goes on. */
  readonly #waiting = new Map<() => void, number>();

  /** Whether a stream may read while it holds a batch: the read does not wait. */
  readonly mayReadAhead = (): boolean => this.#held < AHEAD;

  /** Calls `read` when its turn has come. Rejects with the signal's reason when that is aborted before. */
  async take<T>(size: Size, signal: AbortSignal, read: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const bytes = Math.min(size.bytes, size.rows * ROW_BYTES);
    const most = size.patient === true ? NEXT : FIRST;
    if (this.#held < most) this.#held += bytes;
    else await this.#wait(bytes, most, signal);
    try {
      return await read();
    } finally {
      this.#free(bytes);
    }
  }

  #wait(bytes: number, most: number, signal: AbortSignal): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(onTurn);
        reject(signal.reason as Error);
      };
      const onTurn = () => {
        this.#waiting.delete(onTurn);
        signal.removeEventListener('abort', leave);
        this.#held += bytes;
        resolve();
      };
      signal.addEventListener('abort', leave);
      this.#waiting.set(onTurn, most);
    });
  }

  hold<B extends Batch>(batch: B): B {
    const { capacity } = batch.slot;
    this.#held += capacity;
    const release = () => {
      batch.release();
      this.#free(capacity);
    };
    return { ...batch, isAwaited: () => this.#waiting.size > 0, release };
  }

  #free(bytes: number): void {
    this.#held -= bytes;
    for (const [onTurn, most] of this.#waiting) if (this.#held < most) onTurn();
  }
}

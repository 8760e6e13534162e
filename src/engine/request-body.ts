import { AppError } from '../errors.ts';

/**
 * Bytes above the limit that are still read and discarded before an answer is sent. Closing a connection that has
 * unread bytes sends a reset, which would destroy the answer of a client that writes its whole body before it reads.
 */
const DRAINED = 1024 * 1024;

/** Collects a request's body up to a limit, even when no handler reads it, and calls back when all of it has arrived. */
export class BodyCollector {
  readonly #limit: number;
  readonly #keep: boolean;
  #chunks: Uint8Array[] = [];
  #received = 0;
  #state: 'coming' | 'whole' | 'too-large' | 'lost' = 'coming';
  #reason: unknown = null;
  readonly #bodyWaiters: Waiter<Uint8Array>[] = [];
  #drainedWaiter: ((whole: boolean) => void) | null = null;
  #drained: boolean | null = null;

  /**
   * `announced`: the value of Content-Length, or null. `keep` false: the body is read and discarded, and `body`
   * resolves with no bytes.
   */
  constructor(limit: number, announced: number | null, keep: boolean) {
    this.#limit = limit;
    this.#keep = keep;
    if (announced === 0) this.finish();
    else if (announced !== null && announced > limit && keep) this.#overflow();
  }

  /** Takes a chunk that the caller no longer uses. */
  push(chunk: Uint8Array): void {
    this.#received += chunk.length;
    if (this.#state === 'coming' && this.#keep) {
      if (this.#received > this.#limit) this.#overflow();
      else this.#chunks.push(chunk);
    }
    if (this.#received > this.#limit + DRAINED) this.#settleDrained(false);
  }

  /** Called after the last byte. */
  finish(): void {
    if (this.#state === 'coming') {
      this.#state = 'whole';
      for (const { resolve } of this.#bodyWaiters.splice(0)) resolve(this.#joined());
    }
    this.#settleDrained(true);
  }

  /** Called when the client is gone: the rest of the body will never arrive. */
  abort(reason: unknown): void {
    if (this.#state === 'coming') this.#refuse('lost', reason);
    this.#settleDrained(false);
  }

  /** Resolves with the whole body. Rejects with AppError `body-too-large`, or with the reason of `abort`. */
  body(): Promise<Uint8Array> {
    switch (this.#state) {
      case 'whole':
        return Promise.resolve(this.#joined());
      case 'coming':
        return new Promise((resolve, reject) => this.#bodyWaiters.push({ resolve, reject }));
      case 'too-large':
      case 'lost':
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- an abort reason may be anything
        return Promise.reject(this.#reason);
    }
  }

  /**
   * Calls back, now or later, when an answer may be sent: with true when the whole body was read, with false when the
   * rest is not worth waiting for.
   */
  whenDrained(callback: (whole: boolean) => void): void {
    if (this.#drained !== null) callback(this.#drained);
    else this.#drainedWaiter = callback;
  }

  #overflow(): void {
    const error = new AppError('body-too-large', `The request body may have at most ${this.#limit} bytes.`);
    this.#refuse('too-large', error);
  }

  #refuse(state: 'too-large' | 'lost', reason: unknown): void {
    this.#state = state;
    this.#reason = reason;
    this.#chunks = [];
    for (const { reject } of this.#bodyWaiters.splice(0)) reject(reason);
  }

  #settleDrained(whole: boolean): void {
    if (this.#drained !== null) return;
    this.#drained = whole;
    this.#drainedWaiter?.(whole);
    this.#drainedWaiter = null;
  }

  #joined(): Uint8Array {
    const [only] = this.#chunks;
    if (this.#chunks.length === 1 && only !== undefined) return only;
    return this.#chunks.length === 0 ? new Uint8Array(0) : Buffer.concat(this.#chunks);
  }
}

interface Waiter<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

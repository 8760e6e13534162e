import { AppError } from '../errors.ts';

/**
 * Bytes above the limit that are still read and discarded before an answer is sent. Closing a connection that has
 * unread bytes sends a reset, which would destroy the answer of a client that writes its whole body before it reads.
 */
const DRAINED = 1024 * 1024;

/** What a body is in the end: its bytes, or the reason why there are none. */
type Outcome = { readonly bytes: Uint8Array } | { readonly reason: unknown };

/** Collects a request's body up to a limit, even when no handler reads it, and calls back when all of it has arrived. */
export class BodyCollector {
  readonly #limit: number;
  readonly #keep: boolean;
  #chunks: Uint8Array[] = [];
  #received = 0;
  /** null: the body is coming. */
  #outcome: Outcome | null = null;
  readonly #bodyWaiters: ((outcome: Outcome) => void)[] = [];
  #drainedWaiter: ((whole: boolean) => void) | null = null;
  #drained: boolean | null = null;

  /**
   * `announced`: the value of Content-Length, or null. `keep` false: the body is read and discarded, and `body`
   * resolves with no bytes.
   */
  constructor(limit: number, announced: number | null, keep: boolean) {
    this.#limit = limit;
    this.#keep = keep;
    if (announced !== null && announced > limit && keep) this.#overflow();
  }

  /** Takes a chunk that the caller no longer uses. */
  push(chunk: Uint8Array): void {
    this.#received += chunk.length;
    if (this.#outcome === null && this.#keep) {
      if (this.#received > this.#limit) this.#overflow();
      else this.#chunks.push(chunk);
    }
    if (this.#received > this.#limit + DRAINED) this.#settleDrained(false);
  }

  /** Called after the last byte. */
  finish(): void {
    const [first, ...others] = this.#chunks;
    this.#settle({ bytes: first && others.length === 0 ? first : Buffer.concat(this.#chunks) });
    this.#settleDrained(true);
  }

  /** Called when the client is gone: the rest of the body will never arrive. */
  abort(reason: unknown): void {
    this.#settle({ reason });
    this.#settleDrained(false);
  }

  /** Resolves with the whole body. Rejects with AppError `body-too-large`, or with the reason of `abort`. */
  async body(): Promise<Uint8Array> {
    const outcome =
      this.#outcome ?? (await new Promise<Outcome>((resolve) => this.#bodyWaiters.push(resolve)));
    if ('reason' in outcome) throw outcome.reason;
    return outcome.bytes;
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
    const detail = `The request body may have at most ${this.#limit} bytes.`;
    this.#settle({ reason: new AppError('body-too-large', detail) });
  }

  /** Only the first outcome counts. */
  #settle(outcome: Outcome): void {
    const first = (this.#outcome ??= outcome);
    this.#chunks = [];
    for (const resolve of this.#bodyWaiters.splice(0)) resolve(first);
  }

  #settleDrained(whole: boolean): void {
    if (this.#drained !== null) return;
    this.#drained = whole;
    this.#drainedWaiter?.(whole);
    this.#drainedWaiter = null;
  }
}

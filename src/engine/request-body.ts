import { AppError } from '../base/errors.ts';

/**
 * Bytes above the limit that are still read and discarded before an answer is sent. Closing a connection that has
 * unread bytes sends a reset, which would destroy the answer of a client that writes its whole body before it reads.
 */
const DRAINED = 1024 * 1024;

/** Collects a request's body up to a limit, even when no handler reads it, and calls back when all of it has arrived. */
export class BodyCollector {
  readonly #limit: number;
  readonly #body: Promise<Uint8Array>;
  #resolve: (body: Uint8Array) => void = () => undefined;
  #reject: (reason: unknown) => void = () => undefined;
  /** null: nothing more is kept. */
  #chunks: Uint8Array[] | null;
  #received = 0;
  #drainedWaiter: ((whole: boolean) => void) | null = null;
  #drained: boolean | null = null;

  /** `announced`: the Content-Length, or null. `keep` false: the body is discarded, and `body` resolves with no bytes. */
  constructor(limit: number, announced: number | null, keep: boolean) {
    this.#limit = limit;
    this.#chunks = keep ? [] : null;
    this.#body = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#body.catch(() => undefined); // a handler need not read it
    if (announced !== null && announced > limit && keep) this.#overflow();
  }

  /** Takes a chunk that the caller no longer uses. */
  push(chunk: Uint8Array): void {
    this.#received += chunk.length;
    if (this.#chunks && this.#received > this.#limit) this.#overflow();
    else this.#chunks?.push(chunk);
    if (this.#received > this.#limit + DRAINED) this.#settleDrained(false);
  }

  finish(): void {
    const [first = new Uint8Array(0), ...others] = this.#chunks ?? [];
    this.#resolve(others.length === 0 ? first : Buffer.concat([first, ...others]));
    this.#chunks = null;
    this.#settleDrained(true);
  }

  /** Called when the client is gone: the rest of the body will never arrive. */
  abort(reason: unknown): void {
    this.#fail(reason);
    this.#settleDrained(false);
  }

  /** Resolves with the whole body. Rejects with AppError `body-too-large`, or with the reason of `abort`. */
  body(): Promise<Uint8Array> {
    return this.#body;
  }

  /** Calls back when an answer may be sent. `whole`: all was read; false: the rest is not worth waiting for. */
  whenDrained(callback: (whole: boolean) => void): void {
    if (this.#drained !== null) callback(this.#drained);
    else this.#drainedWaiter = callback;
  }

  #overflow(): void {
    this.#fail(new AppError('body-too-large', `The request body may have at most ${this.#limit} bytes.`));
  }

  #fail(reason: unknown): void {
    this.#reject(reason);
    this.#chunks = null;
  }

  #settleDrained(whole: boolean): void {
    if (this.#drained !== null) return;
    this.#drained = whole;
    this.#drainedWaiter?.(whole);
    this.#drainedWaiter = null;
  }
}

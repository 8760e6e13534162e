import { setMaxListeners } from 'node:events';

/**
 * The signal of an exchange, which most requests need once. An AbortController of Node 20 costs ten times as much, because
 * V8 makes hidden classes anew for each. `AbortSignal.any` takes it for none: see `firstAbort` in store/turns/deadline.ts.
 */
export class ExchangeSignal extends EventTarget implements AbortSignal {
  readonly onabort = null;
  aborted = false;
  reason: unknown = undefined;

  constructor() {
    super();
    setMaxListeners(0, this); // one for each read of a request, which may ask for many at the same time
  }

  /** Call at most once. */
  abort(reason: unknown): void {
    this.aborted = true;
    this.reason = reason;
    this.dispatchEvent(new Event('abort'));
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }
}

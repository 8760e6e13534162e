import { corked } from './cork.ts';
import type { HttpResponse } from './uws.ts';
import { StallError, type Watch, type Watched } from './watch.ts';

const REARM_MS = 3000;

/** The part of uWebSockets.js's response that a body in one piece uses. */
export type BytesResponse = Pick<HttpResponse, 'cork' | 'tryEnd' | 'getWriteOffset'>;

export interface BytesOptions {
  readonly response: BytesResponse;
  readonly bytes: Uint8Array;
  /** Writes status and headers; called in the first cork. */
  readonly writeHead: () => void;
  readonly watch: Watch;
  readonly cut: (reason: unknown) => void;
  readonly ended: () => void;
}

/**
 * A body that is too large for one cork. `tryEnd` takes what the socket takes and buffers nothing, so nothing can be lost
 * and the rest is sent from `bytes` when there is room; `end` loses the whole body when the head before it does not fit.
 */
export class UwsBytes implements Watched {
  private readonly options: BytesOptions;
  private state: 'sending' | 'over' = 'sending';
  private offset = 0;
  private takenAt: number;
  private triedAt: number;

  constructor(options: BytesOptions) {
    this.options = options;
    this.takenAt = options.watch.now();
    this.triedAt = this.takenAt;
  }

  start(): void {
    this.options.watch.add(this);
    this.proceed(this.options.writeHead);
  }

  writable(): void {
    if (this.state === 'sending') this.proceed();
  }

  check(): void {
    const { watch, cut } = this.options;
    if (this.state === 'over') return;
    const now = watch.now();
    if (now - this.takenAt >= watch.stallTimeoutMs) cut(new StallError(watch.stallTimeoutMs));
    // A try tells whether the reader takes bytes, long before the socket is writable, and sets its timer anew.
    else if (now - this.triedAt >= REARM_MS) this.proceed();
  }

  lost(): void {
    this.state = 'over';
    this.options.watch.delete(this);
  }

  private proceed(before?: () => void): void {
    const { response, bytes, ended } = this.options;
    const [, done] = corked(response, () => {
      before?.();
      return response.tryEnd(bytes.subarray(this.offset), bytes.length);
    });
    this.triedAt = this.options.watch.now();
    if (done) {
      this.lost();
      ended();
      return;
    }
    const offset = response.getWriteOffset();
    if (offset > this.offset) this.takenAt = this.triedAt;
    this.offset = offset;
  }
}

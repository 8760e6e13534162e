import { corked } from '../cork.ts';
import type { HttpResponse } from './library.ts';
import { StallError, type StallTimer, type Stallable } from '../stall-timer.ts';

const REARM_MS = 3000;

/** The part of uWebSockets.js's response that a body in one piece uses. */
export type BytesResponse = Pick<HttpResponse, 'cork' | 'tryEnd' | 'getWriteOffset'>;

export interface BytesOptions {
  /** Its head has been written, and as much of the body as the socket took. */
  readonly response: BytesResponse;
  readonly bytes: Uint8Array;
  readonly stallTimer: StallTimer;
  readonly cut: (reason: unknown) => void;
  readonly ended: () => void;
}

/**
 * The rest of a body that is too large for one cork and that its reader did not take at once. `tryEnd` takes what the
 * socket takes and buffers nothing, so no byte can be lost, and the rest is sent from `bytes` when there is room.
 * `end` would copy all of it.
 */
export class UwsBytes implements Stallable {
  readonly #options: BytesOptions;
  /** Bytes that the socket took. */
  sent: number;
  #takenAt: number;
  #triedAt: number;

  constructor(options: BytesOptions) {
    this.#options = options;
    this.sent = options.response.getWriteOffset();
    this.#takenAt = options.stallTimer.now();
    this.#triedAt = this.#takenAt;
    options.stallTimer.add(this);
  }

  writable(): void {
    const { response, bytes, stallTimer, ended } = this.#options;
    const [, done] = corked(response, () => response.tryEnd(bytes.subarray(this.sent), bytes.length));
    if (done) {
      this.sent = bytes.length;
      stallTimer.delete(this);
      ended();
      return;
    }
    const offset = response.getWriteOffset();
    this.#triedAt = stallTimer.now();
    if (offset > this.sent) this.#takenAt = this.#triedAt;
    this.sent = offset;
  }

  check(): void {
    const { stallTimer, cut } = this.#options;
    const now = stallTimer.now();
    if (now - this.#takenAt >= stallTimer.stallTimeoutMs) cut(new StallError(stallTimer.stallTimeoutMs));
    // A try tells whether the reader takes bytes, long before the socket is writable, and restarts its timer.
    else if (now - this.#triedAt >= REARM_MS) this.writable();
  }

  lost(): void {
    this.#options.stallTimer.delete(this);
  }
}

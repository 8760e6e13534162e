import { CORK_BYTES, corked } from '../cork.ts';
import type { HttpResponse } from './library.ts';
import type { StallTimer } from '../stall-timer.ts';

/** Bytes around a chunk: CR LF, four hex digits, CR LF, and some spare room. */
const FRAME_BYTES = 16;
/**
 * uWebSockets.js's own timer (10 s, in this build 30 s) counts from the last blocked write, even if the reader has
 * taken bytes since. The outlet restarts it after this time.
 */
const REARM_MS = 3000;
/**
 * After a block the kernel's buffers still settle, and most readers continue soon, so probes are frequent for this
 * long.
 */
const EAGER_MS = 5000;

/** The part of uWebSockets.js's response that a stream uses. */
export type StreamResponse = Pick<HttpResponse, 'cork' | 'write' | 'end' | 'pause' | 'resume'>;

export interface OutletOptions {
  readonly response: StreamResponse;
  /** Writes status and headers. Called in the cork of the first chunk. */
  readonly writeHead: () => void;
  /** The most bytes that `writeHead` writes. */
  readonly headBytes: number;
  readonly stallTimer: StallTimer;
}

/**
 * Writes a chunked answer in corks of a safe size, and knows reliably whether its reader takes it. uWebSockets.js
 * buffers at most one cork and a few bytes of probes.
 */
export class Outlet {
  /**
   * - `flowing`: uWebSockets.js takes what is written.
   * - `blocked`: uWebSockets.js holds bytes that the socket did not take. Further writes would only be buffered
   *   there.
   * - `closed`: ended, cut or lost. The response must not be touched any more.
   */
  state: 'flowing' | 'blocked' | 'closed' = 'flowing';
  readonly #response: StreamResponse;
  readonly #stallTimer: StallTimer;
  /** Writes what precedes the first chunk. It holds the reply's headers. Null: that was done. */
  #head: Pick<OutletOptions, 'writeHead' | 'headBytes'> | null;
  /** When the reader last showed that it takes bytes. All times here are from the stall timer's clock. */
  #takenAt = 0;
  /** When uWebSockets.js's timer for this connection was last set; null while it does not run. */
  #armedAt: number | null = null;

  constructor({ response, stallTimer, writeHead, headBytes }: OutletOptions) {
    this.#response = response;
    this.#stallTimer = stallTimer;
    this.#head = { writeHead, headBytes };
  }

  /**
   * Writes the first `length` bytes, one cork at a time, until the socket is full. Returns the number of bytes passed
   * on.
   */
  send(bytes: Uint8Array, length: number): number {
    const response = this.#response;
    let sent = 0;
    while (sent < length && this.state === 'flowing') {
      const head = this.#head;
      const room = CORK_BYTES - (head?.headBytes ?? 0);
      const piece = bytes.subarray(sent, Math.min(length, sent + room - FRAME_BYTES));
      const accepted = corked(response, () => {
        head?.writeHead();
        return response.write(piece); // false: taken and buffered, so never sent again
      });
      this.#head = null;
      sent += piece.length;
      if (!accepted) this.#block();
    }
    return sent;
  }

  /** Ends the answer. Only when flowing: the reader then has 10 s for the bytes that uWebSockets.js still holds. */
  end(): void {
    const response = this.#response;
    response.cork(() => {
      this.#head?.writeHead();
      response.end();
    });
    this.state = 'closed';
  }

  /** Called when the socket has room again and uWebSockets.js has stopped its timer. */
  opened(): void {
    this.#takenAt = this.#stallTimer.now();
    this.#armedAt = null;
    this.state = 'flowing';
  }

  /** Corks nothing, which makes uWebSockets.js send the bytes it holds. */
  drain(): void {
    this.#response.cork(() => undefined);
  }

  /** Whether the reader has taken nothing for too long. */
  stalled(): boolean {
    const stallTimer = this.#stallTimer;
    return this.state === 'blocked' && stallTimer.now() - this.#takenAt >= stallTimer.stallTimeoutMs;
  }

  /**
   * Tests at intervals whether the reader has taken the bytes that blocked, by writing the first of `bytes`. The
   * write is accepted only when all bytes before it have gone to the kernel. The kernel reports "writable" when a
   * third of its buffer is free, which takes minutes at 5 kB/s and 2 MB; it accepts a write as soon as the first
   * bytes are gone. Returns the number of bytes passed on.
   */
  probe(bytes: Uint8Array): number {
    const takenAt = this.#takenAt;
    const now = this.#stallTimer.now();
    if (this.state !== 'blocked' || (now - takenAt >= EAGER_MS && !this.#rearmDue(now))) return 0;
    if (bytes.length === 0) {
      this.drain();
      return 0;
    }
    this.state = 'flowing';
    const sent = this.send(bytes, 1);
    // A probe that also blocks gives no new information.
    this.#takenAt = this.#isBlocked() ? takenAt : now;
    return sent;
  }

  /** Restarts the connection's timer without writing. Resuming does that, and nothing is read or lost in between. */
  rearm(): void {
    const now = this.#stallTimer.now();
    if (this.state === 'closed' || !this.#rearmDue(now)) return;
    this.#armedAt = now;
    this.#response.pause();
    this.#response.resume();
  }

  #block(): void {
    const now = this.#stallTimer.now();
    this.#takenAt = now; // all bytes before this write were taken
    this.#armedAt = now; // a blocked write sets the timer
    this.state = 'blocked';
  }

  #isBlocked(): boolean {
    return this.state === 'blocked';
  }

  #rearmDue(now: number): boolean {
    return this.#armedAt !== null && now - this.#armedAt >= REARM_MS;
  }
}

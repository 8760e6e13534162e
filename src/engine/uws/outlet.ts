import { CORK_BYTES, corked } from '../cork.ts';
import type { HttpResponse } from './library.ts';
import type { Watch } from '../stall-timer.ts';

/** Around a chunk: CR LF, four hex digits, CR LF; with room to spare. */
const FRAME_BYTES = 16;
/** uWebSockets.js's own timer (10 s, this build 30 s) counts from the last blocked write, whatever the reader took since. */
const REARM_MS = 3000;
/** After a block the kernel's own buffers still settle, and most readers go on soon: probes are frequent at first. */
const EAGER_MS = 5000;

/** The part of uWebSockets.js's response that a stream uses. */
export type StreamResponse = Pick<HttpResponse, 'cork' | 'write' | 'end' | 'pause' | 'resume'>;

export interface OutletOptions {
  readonly response: StreamResponse;
  /** Writes status and headers; called in the cork of the first chunk. */
  readonly writeHead: () => void;
  /** Bytes that `writeHead` writes at most. */
  readonly headBytes: number;
  readonly watch: Watch;
}

/**
 * What a chunked answer is written through: in corks of a size that is safe, and with the truth about whether its reader
 * takes it. At most one cork is buffered in uWebSockets.js, and a few bytes of probes.
 */
export class Outlet {
  /**
   * - `flowing`: uWebSockets.js takes what is written.
   * - `blocked`: it holds bytes that the socket did not take; what is written now would only lie there.
   * - `closed`: ended, cut or lost; the response must not be touched any more.
   */
  state: 'flowing' | 'blocked' | 'closed' = 'flowing';
  private readonly options: OutletOptions;
  private headSent = false;
  /** When the reader last showed that it takes bytes. As all times here, by the watch. */
  private takenAt = 0;
  /** When uWebSockets.js's timer for this connection was last set; null while it does not run. */
  private armedAt: number | null = null;

  constructor(options: OutletOptions) {
    this.options = options;
  }

  /** Writes the first `length` bytes, a cork at a time, until the socket is full. Returns how many are out of our hands. */
  send(bytes: Uint8Array, length: number): number {
    const { response, writeHead, headBytes } = this.options;
    let sent = 0;
    while (sent < length && this.state === 'flowing') {
      const room = this.headSent ? CORK_BYTES : CORK_BYTES - headBytes;
      const piece = bytes.subarray(sent, Math.min(length, sent + room - FRAME_BYTES));
      const accepted = corked(response, () => {
        if (!this.headSent) writeHead();
        return response.write(piece); // false means taken and buffered: never sent again
      });
      this.headSent = true;
      sent += piece.length;
      if (!accepted) this.block();
    }
    return sent;
  }

  /** The end of the answer. Only when flowing: what uWebSockets.js holds then has 10 s to go. */
  end(): void {
    const { response, writeHead } = this.options;
    response.cork(() => {
      if (!this.headSent) writeHead();
      response.end();
    });
    this.state = 'closed';
  }

  /** The socket has room again, and uWebSockets.js has stopped its timer. */
  opened(): void {
    this.takenAt = this.options.watch.now();
    this.armedAt = null;
    this.state = 'flowing';
  }

  /** An empty cork hands on what uWebSockets.js holds. */
  drain(): void {
    this.options.response.cork(() => undefined);
  }

  /** Whether the reader has taken nothing for too long. */
  stalled(): boolean {
    const { watch } = this.options;
    return this.state === 'blocked' && watch.now() - this.takenAt >= watch.stallTimeoutMs;
  }

  /**
   * Sees from time to time whether the reader has taken what blocked, by writing the first of `bytes`: it is accepted only
   * when all before it has gone to the kernel. The kernel says "writable" at a third of its buffer free, which at 5 kB/s
   * and 2 MB takes minutes; it takes a write after the first bytes. Returns how many bytes are out of our hands.
   */
  probe(bytes: Uint8Array): number {
    const { takenAt } = this;
    const now = this.options.watch.now();
    if (this.state !== 'blocked' || (now - takenAt >= EAGER_MS && !this.rearmDue(now))) return 0;
    if (bytes.length === 0) {
      this.drain();
      return 0;
    }
    this.state = 'flowing';
    const sent = this.send(bytes, 1);
    // A probe that blocks as well says nothing new.
    this.takenAt = this.isBlocked() ? takenAt : now;
    return sent;
  }

  /** Sets the connection's timer anew without writing: resuming does that, and nothing is read or lost in between. */
  rearm(): void {
    const now = this.options.watch.now();
    if (this.state === 'closed' || !this.rearmDue(now)) return;
    this.armedAt = now;
    this.options.response.pause();
    this.options.response.resume();
  }

  private block(): void {
    const now = this.options.watch.now();
    this.takenAt = now; // all before this write was taken
    this.armedAt = now; // a blocked write sets the timer
    this.state = 'blocked';
  }

  private isBlocked(): boolean {
    return this.state === 'blocked';
  }

  private rearmDue(now: number): boolean {
    return this.armedAt !== null && now - this.armedAt >= REARM_MS;
  }
}

import type { Sink } from '../../pipeline/sink.ts';
import { CORK_BYTES } from '../cork.ts';
import { Outlet, type OutletOptions } from './outlet.ts';
import { WaitingWriter } from '../waiting-writer.ts';
import { StallError, type Stallable, type StallTimer } from '../stall-timer.ts';

/** With the reserve and the frame of a chunk, this is the most that one cork carries. */
const CHUNK_BYTES = 15_800;

/**
 * Bytes of each chunk that are held back until the next chunk, a flush, or a check by the stall timer. When the socket is
 * full, there must be bytes to probe it with, and a waiting writer supplies none.
 */
const RESERVE_BYTES = 64;

/** So few bytes wait for a flush, which then passes them on in one piece. */
const FEW_BYTES = 1_024;

const NOTHING = new Uint8Array(0);
/** Joins the reserve and a chunk. Bytes written from it are copied before any other code can use it. */
const scratch = Buffer.allocUnsafeSlow(CORK_BYTES);

export interface StreamOptions extends OutletOptions {
  readonly signal: AbortSignal;
  /** Cuts the connection. The stream's `lost` is then called with the same reason. */
  readonly cut: (reason: unknown) => void;
  /** Called when the stream was ended cleanly. */
  readonly ended: () => void;
}

/**
 * A chunked answer on uWebSockets.js. However long its reader stalls, memory is bounded: uWebSockets.js buffers one
 * cork (16 KB), and this object holds the excess of a chunk larger than `chunkBytes`.
 */
export class UwsStream implements Sink, Stallable {
  readonly chunkBytes = CHUNK_BYTES;
  readonly signal: AbortSignal;
  /** Bytes taken from the writer. */
  sent = 0;
  readonly #stallTimer: StallTimer;
  readonly #cut: StreamOptions['cut'];
  readonly #ended: StreamOptions['ended'];
  readonly #outlet: Outlet;
  /**
   * Bytes copied from the writer's chunks and not yet passed to uWebSockets.js: the reserve, and bytes that wait for
   * the reader.
   */
  #waiting = NOTHING;
  /** The writer that waits for room, or for the end. */
  readonly #writer = new WaitingWriter();
  #ending = false;

  constructor(options: StreamOptions) {
    const { signal, stallTimer, cut, ended } = options;
    this.signal = signal;
    this.#stallTimer = stallTimer;
    this.#cut = cut;
    this.#ended = ended;
    this.#outlet = new Outlet(options);
    stallTimer.add(this);
  }

  write(chunk: Uint8Array): void | Promise<void> {
    this.#assertOpen();
    this.sent += chunk.length;
    const bytes = this.#joined(chunk);
    const keep = bytes.length <= FEW_BYTES ? bytes.length : RESERVE_BYTES;
    const sent = this.#outlet.send(bytes, bytes.length - keep);
    this.#waiting = new Uint8Array(bytes.subarray(sent)); // a copy
    // Blocked without a reserve, after a flush: accept one more chunk.
    if (this.#isBlocked() && this.#waiting.length > 0) return this.#writer.wait();
  }

  flush(): void {
    this.#sendWaiting(0);
  }

  end(): void | Promise<void> {
    this.#assertOpen();
    this.#ending = true;
    this.#proceed();
    if (!this.#isClosed()) return this.#writer.wait();
  }

  fail(error: unknown): void {
    if (!this.#isClosed()) this.#cut(error);
  }

  /**
   * Called when the socket has room again. It must write what there is, because uWebSockets.js does not drain by
   * itself when it calls this.
   */
  writable(): void {
    if (this.#isClosed()) return;
    this.#outlet.opened();
    this.#outlet.drain();
    this.#proceed();
  }

  check(): void {
    if (this.#outlet.stalled()) {
      this.#cut(new StallError(this.#stallTimer.stallTimeoutMs));
      return;
    }
    if (this.#isBlocked()) {
      this.#waiting = this.#waiting.subarray(this.#outlet.probe(this.#waiting));
      this.#proceed();
    } else {
      this.#sendWaiting(0);
    }
    this.#outlet.rearm();
  }

  /** Called when the connection is gone or was cut. Nothing may touch the response afterwards. */
  lost(reason: unknown): void {
    if (this.#isClosed()) return;
    this.#outlet.state = 'closed';
    this.#close();
    this.#writer.fail(reason);
  }

  /** Sends the waiting bytes. When all of them were taken, ends the answer or lets the writer continue. */
  #proceed(): void {
    this.#sendWaiting(this.#ending ? 0 : RESERVE_BYTES);
    if (this.#outlet.state !== 'flowing') return;
    if (this.#ending) {
      this.#outlet.end();
      this.#close();
      this.#ended();
    }
    this.#writer.resumeLater();
  }

  #sendWaiting(keep: number): void {
    if (this.#waiting.length <= keep) return;
    const sent = this.#outlet.send(this.#waiting, this.#waiting.length - keep);
    this.#waiting = sent === this.#waiting.length ? NOTHING : this.#waiting.subarray(sent);
  }

  #joined(chunk: Uint8Array): Uint8Array {
    const waiting = this.#waiting;
    if (waiting.length === 0) return chunk;
    const length = waiting.length + chunk.length;
    if (length > scratch.length) return Buffer.concat([waiting, chunk]);
    scratch.set(waiting);
    scratch.set(chunk, waiting.length);
    return scratch.subarray(0, length);
  }

  #close(): void {
    this.#waiting = NOTHING;
    this.#stallTimer.delete(this);
  }

  #assertOpen(): void {
    this.signal.throwIfAborted();
    if (this.#ending) throw new TypeError('The stream was ended already.');
  }

  #isClosed(): boolean {
    return this.#outlet.state === 'closed';
  }

  #isBlocked(): boolean {
    return this.#outlet.state === 'blocked';
  }
}

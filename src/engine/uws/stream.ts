import type { Sink } from '../../pipeline/sink.ts';
import { CORK_BYTES, corked } from '../cork.ts';
import type { HttpResponse } from './library.ts';
import type { SizedOptions } from './sized.ts';
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
/** Bytes around a chunk: CR LF, four hex digits, CR LF, and some spare room. */
const FRAME_BYTES = 16;
/** The most bytes of a piece behind a flush, with its frame. It shares the cork of the last chunk, and so its packet. */
const BEHIND_BYTES = 32;
/**
 * uWebSockets.js's own timer (10 s, in this build 30 s) counts from the last blocked write, even if the reader has
 * taken bytes since. The stream restarts it after this time.
 */
const REARM_MS = 3000;
/** After a block the kernel's buffers settle and most readers continue soon: probes are frequent for this long. */
const EAGER_MS = 5000;

const NOTHING = new Uint8Array(0);
/** Joins the reserve and a chunk. Bytes written from it are copied before any other code can use it. */
const scratch = Buffer.allocUnsafeSlow(CORK_BYTES);

export type StreamResponse = Pick<HttpResponse, 'cork' | 'write' | 'end' | 'pause' | 'resume'>;

export interface StreamOptions extends Pick<SizedOptions, 'writeHead' | 'stallTimer' | 'cut' | 'ended'> {
  readonly response: StreamResponse;
  /** The most bytes that `writeHead` writes. */
  readonly headBytes: number;
  readonly signal: AbortSignal;
}

/**
 * A chunked answer on uWebSockets.js, written in corks of a safe size. However long its reader stalls, memory is bounded:
 * uWebSockets.js buffers at most one cork (16 KB) and a few bytes of probes, and this object holds the excess of a chunk
 * larger than `chunkBytes`.
 */
export class UwsStream implements Sink, Stallable {
  readonly chunkBytes = CHUNK_BYTES;
  readonly signal: AbortSignal;
  /** Bytes taken from the writer. */
  sent = 0;
  readonly #response: StreamResponse;
  readonly #stallTimer: StallTimer;
  readonly #cut: StreamOptions['cut'];
  readonly #ended: StreamOptions['ended'];
  /** Writes what precedes the first chunk. It holds the reply's headers. Null: that was done. */
  #head: Pick<StreamOptions, 'writeHead' | 'headBytes'> | null;
  /**
   * `blocked`: uWebSockets.js holds bytes that the socket did not take, and would only buffer further writes. `closed`:
   * ended, cut or lost; the response must not be touched any more.
   */
  #state: 'flowing' | 'blocked' | 'closed' = 'flowing';
  /** Bytes copied from chunks and not yet passed on: the reserve, and bytes that wait for the reader. */
  #waiting = NOTHING;
  /** The writer that waits for room, or for the end. */
  readonly #writer = new WaitingWriter();
  #ending = false;
  /** When the reader last showed that it takes bytes. All times here are from the stall timer's clock. */
  #takenAt = 0;
  /** When uWebSockets.js's timer for this connection was last set; null while it does not run. */
  #armedAt: number | null = null;

  constructor({ response, writeHead, headBytes, signal, stallTimer, cut, ended }: StreamOptions) {
    this.signal = signal;
    this.#response = response;
    this.#stallTimer = stallTimer;
    this.#cut = cut;
    this.#ended = ended;
    this.#head = { writeHead, headBytes };
    stallTimer.add(this);
  }

  write(chunk: Uint8Array): void | Promise<void> {
    this.#assertOpen();
    this.sent += chunk.length;
    const bytes = this.#joined(chunk);
    const keep = bytes.length <= FEW_BYTES ? bytes.length : RESERVE_BYTES;
    const sent = this.#send(bytes, bytes.length - keep);
    this.#waiting = new Uint8Array(bytes.subarray(sent)); // a copy
    // Blocked without a reserve, after a flush: accept one more chunk.
    if (this.#is('blocked') && this.#waiting.length > 0) return this.#writer.wait();
  }

  flush(behind = NOTHING): void | Promise<void> {
    if (behind.length > 0 && this.#is('blocked')) return this.#writer.wait().then(() => this.flush(behind));
    this.sent += behind.length;
    if (this.#waiting.length === 0) this.#send(behind, behind.length);
    else this.#sendWaiting(0, behind);
    if (behind.length > 0 && this.#is('blocked')) return this.#writer.wait();
  }

  end(): void | Promise<void> {
    this.#assertOpen();
    this.#ending = true;
    this.#proceed();
    if (!this.#is('closed')) return this.#writer.wait();
  }

  fail(error: unknown): void {
    if (!this.#is('closed')) this.#cut(error);
  }

  /** The socket has room again. All must be written here: uWebSockets.js does not drain by itself after this call. */
  writable(): void {
    if (this.#is('closed')) return;
    this.#takenAt = this.#stallTimer.now();
    this.#armedAt = null;
    this.#state = 'flowing';
    this.#drain();
    this.#proceed();
  }

  check(): void {
    const { stallTimeoutMs } = this.#stallTimer;
    const now = this.#stallTimer.now();
    if (!this.#is('blocked')) {
      this.#sendWaiting(0);
    } else if (now - this.#takenAt >= stallTimeoutMs) {
      this.#cut(new StallError(stallTimeoutMs));
      return;
    } else {
      if (now - this.#takenAt < EAGER_MS || this.#rearmDue(now)) this.#probe(now);
      this.#proceed();
    }
    if (this.#is('closed') || !this.#rearmDue(now)) return;
    // Resuming restarts the connection's timer, and nothing is read or lost in between.
    this.#armedAt = now;
    this.#response.pause();
    this.#response.resume();
  }

  /** Called when the connection is gone or was cut. Nothing may touch the response afterwards. */
  lost(reason: unknown): void {
    if (this.#is('closed')) return;
    this.#close();
    this.#writer.fail(reason);
  }

  /**
   * Writes the first `length` bytes, cork by cork, until the socket is full, and `behind` with the last of them. Returns how
   * many were passed on.
   */
  #send(bytes: Uint8Array, length: number, behind = NOTHING): number {
    const response = this.#response;
    let sent = 0;
    while (sent < length && this.#is('flowing')) {
      const head = this.#head;
      const room = CORK_BYTES - (head?.headBytes ?? 0);
      const piece = bytes.subarray(sent, Math.min(length, sent + room - FRAME_BYTES - BEHIND_BYTES));
      const accepted = corked(response, () => {
        head?.writeHead();
        const accepted = response.write(piece); // false: taken and buffered, so never sent again
        return behind.length > 0 && sent + piece.length === length ? response.write(behind) : accepted;
      });
      this.#head = null;
      sent += piece.length;
      if (accepted) continue;
      this.#takenAt = this.#armedAt = this.#stallTimer.now(); // all bytes before were taken; a blocked write sets the timer
      this.#state = 'blocked';
    }
    return sent;
  }

  /** Corks nothing, which makes uWebSockets.js send the bytes it holds. */
  #drain(): void {
    this.#response.cork(() => undefined);
  }

  /**
   * Tests whether the reader has taken the bytes that blocked, by writing the first of those that wait. The write is
   * accepted only when all bytes before it have gone to the kernel. The kernel reports "writable" when a third of its
   * buffer is free, which takes minutes at 5 kB/s and 2 MB; it accepts a write as soon as the first bytes are gone.
   */
  #probe(now: number): void {
    if (this.#waiting.length === 0) {
      this.#drain();
      return;
    }
    const takenAt = this.#takenAt;
    this.#state = 'flowing';
    this.#waiting = this.#waiting.subarray(this.#send(this.#waiting, 1));
    // A probe that also blocks gives no new information.
    this.#takenAt = this.#is('blocked') ? takenAt : now;
  }

  /** Sends the waiting bytes. When all of them were taken, ends the answer or lets the writer continue. */
  #proceed(): void {
    this.#sendWaiting(this.#ending ? 0 : RESERVE_BYTES);
    if (!this.#is('flowing')) return;
    if (this.#ending) {
      // The reader then has 10 s for the bytes that uWebSockets.js still holds.
      const response = this.#response;
      response.cork(() => {
        this.#head?.writeHead();
        response.end();
      });
      this.#close();
      this.#ended();
    }
    this.#writer.resumeLater();
  }

  #sendWaiting(keep: number, behind = NOTHING): void {
    if (this.#waiting.length <= keep) return;
    const sent = this.#send(this.#waiting, this.#waiting.length - keep, behind);
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
    this.#state = 'closed';
    this.#waiting = NOTHING;
    this.#stallTimer.delete(this);
  }

  #assertOpen(): void {
    this.signal.throwIfAborted();
    if (this.#ending) throw new TypeError('The stream was ended already.');
  }

  #rearmDue(now: number): boolean {
    return this.#armedAt !== null && now - this.#armedAt >= REARM_MS;
  }

  #is(state: 'flowing' | 'blocked' | 'closed'): boolean {
    return this.#state === state;
  }
}

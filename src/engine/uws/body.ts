import type { Sink } from '../../pipeline/sink.ts';
import { StallError, type Stallable, type StallTimer } from '../stall-timer.ts';
import { WaitingWriter } from '../waiting-writer.ts';
import { joined, tryEnd, writeChunk, type BodyHead, type BodyResponse, type PassedBytes } from './pieces.ts';

/** With the reserve and the frame of a chunk, this is the most that one cork carries. */
const CHUNK_BYTES = 15_800;
/** Of a known length, `tryEnd` takes any number of bytes. */
const SIZED_CHUNK_BYTES = 64 * 1024;

/**
 * Bytes of each chunk that are held back until the next chunk, a flush, or a check by the stall timer. When the socket is
 * full, there must be bytes to probe it with, and a waiting writer supplies none.
 */
const RESERVE_BYTES = 64;

/** So few bytes wait for a flush, which then passes them on in one piece. */
const FEW_BYTES = 1_024;
/**
 * uWebSockets.js's own timer (KEEP_ALIVE, but at least 8 s) counts from the last blocked write, even if the reader has
 * taken bytes since. The body restarts it after this time.
 */
const REARM_MS = 3000;
/** After a block the kernel's buffers settle and most readers continue soon: probes are frequent for this long. */
const EAGER_MS = 5000;

const NOTHING = new Uint8Array(0);

/** The exchange that a body belongs to. */
interface BodyOwner {
  /** Read only when it is needed: most answers in one piece need none. */
  readonly signal: AbortSignal;
  /** Cuts the connection. The body's `lost` is then called with the same reason. */
  cut(reason: unknown): void;
  /** Called when the answer was ended cleanly. */
  ended(): void;
}

interface BodyOptions {
  readonly response: BodyResponse;
  readonly owner: BodyOwner;
  readonly stallTimer: StallTimer;
  readonly head: BodyHead;
  /** The total number of bytes, at least one: the value of Content-Length. Null: the body is chunked. */
  readonly length: number | null;
  /** Whether the connection is closed behind the body, which must be chunked. */
  readonly closes: boolean;
}

/**
 * The body of an answer on uWebSockets.js. However long its reader stalls, memory is bounded.
 *
 * |                                 | chunked                                    | of known length               |
 * |---------------------------------|--------------------------------------------|-------------------------------|
 * | one write                       | one cork of a safe size                    | all that there is: `tryEnd`   |
 * | what a full socket did not take | uWebSockets.js buffers it: at most one     | nothing is buffered: the rest |
 * |                                 | cork (16 KB) and a few bytes of probes     | waits here                    |
 * | held back                       | a reserve, and little that waits for more  | nothing                       |
 * | the end                         | `end`                                      | comes with its last byte      |
 *
 * What both have: bytes that wait for the reader, the writer that waits with them, and the checks whether it stalls.
 */
export class UwsBody implements Sink, Stallable {
  readonly chunkBytes: number;
  /** Bytes passed to uWebSockets.js. Of a known length: those that the socket took. */
  sent = 0;
  readonly #response: BodyResponse;
  readonly #owner: BodyOwner;
  readonly #stallTimer: StallTimer;
  readonly #length: number | null;
  readonly #closes: boolean;
  /** It holds the reply's headers. Null: it was written. */
  #head: BodyHead | null;
  /**
   * `blocked`: the socket did not take all. uWebSockets.js would only buffer further chunks. `closed`: ended, cut or lost;
   * the response must not be touched any more.
   */
  #state: 'flowing' | 'blocked' | 'closed' = 'flowing';
  /** Bytes not yet passed on: the reserve, and bytes that wait for the reader. */
  #waiting: Uint8Array = NOTHING;
  /** The writer that waits for room, or for the end. */
  readonly #writer = new WaitingWriter();
  #ending = false;
  /** When the reader last showed that it takes bytes. All times here are from the stall timer's clock. */
  #takenAt = 0;
  /** When uWebSockets.js's timer for this connection was last set; null while it does not run. */
  #armedAt: number | null = null;

  constructor({ response, owner, stallTimer, head, length, closes }: BodyOptions) {
    this.#response = response;
    this.#owner = owner;
    this.#stallTimer = stallTimer;
    this.#head = head;
    this.#length = length;
    this.#closes = closes;
    this.chunkBytes = length === null ? CHUNK_BYTES : SIZED_CHUNK_BYTES;
    if (length === null) stallTimer.add(this); // which also flushes the reserve
  }

  get signal(): AbortSignal {
    return this.#owner.signal;
  }

  write(chunk: Uint8Array): void | Promise<void> {
    this.#assertOpen();
    const bytes = joined(this.#waiting, chunk);
    this.#pass(bytes, this.#isChunked && bytes.length <= FEW_BYTES ? bytes.length : this.#reserve);
    return this.#keep();
  }

  /** Writes a whole body of known length, which nobody changes until its end. Returns whether the socket took it now. */
  writeWhole(bytes: Uint8Array): boolean {
    this.#pass(bytes, 0);
    return this.#is('closed');
  }

  flush(behind = NOTHING): void | Promise<void> {
    if (behind.length > 0 && this.#is('blocked')) return this.#writer.wait().then(() => this.flush(behind));
    if (this.#waiting.length === 0) {
      this.#pass(behind, 0);
    } else {
      this.#pass(this.#waiting, 0, behind);
      this.sent += behind.length;
    }
    if (behind.length > 0 && this.#is('blocked')) return this.#keep() ?? this.#writer.wait();
  }

  end(): void | Promise<void> {
    if (this.#length !== null) {
      this.signal.throwIfAborted();
      if (this.#is('closed')) return;
      throw new Error(`fewer than the ${this.#length} bytes announced were written`);
    }
    this.#assertOpen();
    this.#ending = true;
    this.#proceed();
    if (!this.#is('closed')) return this.#writer.wait();
  }

  fail(error: unknown): void {
    if (!this.#is('closed')) this.#owner.cut(error);
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
      this.#pass(this.#waiting, 0);
    } else if (now - this.#takenAt >= stallTimeoutMs) {
      this.#owner.cut(new StallError(stallTimeoutMs));
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

  get #isChunked(): boolean {
    return this.#length === null;
  }

  get #reserve(): number {
    return this.#isChunked ? RESERVE_BYTES : 0;
  }

  /** Passes on all but the last `keep` bytes, until the socket is full, and `behind` with the last of them. The rest waits. */
  #pass(bytes: Uint8Array, keep: number, behind = NOTHING): void {
    const end = bytes.length - keep;
    let at = 0;
    while (at < end && this.#is('flowing')) {
      const passed = this.#put(bytes.subarray(at, end), behind);
      this.#head = null;
      this.sent += passed.bytes;
      at += passed.bytes;
      if (passed.left === 'blocked') this.#block();
      else if (passed.left === 'ended') this.#finish();
    }
    this.#waiting = at === bytes.length ? NOTHING : bytes.subarray(at);
  }

  #put(bytes: Uint8Array, behind: Uint8Array): PassedBytes {
    const response = this.#response;
    const head = this.#head;
    const length = this.#length;
    if (length === null) return writeChunk(response, head, bytes, behind);
    return tryEnd(response, head, bytes, { length, sent: this.sent });
  }

  /** A blocked write sets the timer of uWebSockets.js. All bytes of chunks before it were taken. */
  #block(): void {
    this.#takenAt = this.#armedAt = this.#stallTimer.now();
    this.#state = 'blocked';
    this.#stallTimer.add(this);
  }

  /** Corks nothing, which makes uWebSockets.js send the bytes it holds. */
  #drain(): void {
    this.#response.cork(() => undefined);
  }

  /**
   * Tests whether the reader has taken the bytes that blocked, by writing the first of those that wait. A chunk is
   * accepted only when all bytes before it have gone to the kernel. The kernel reports "writable" when a third of its
   * buffer is free, which takes minutes at 5 kB/s and 2 MB; it accepts a write as soon as the first bytes are gone.
   */
  #probe(now: number): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) {
      this.#drain();
      return;
    }
    const takenAt = this.#takenAt;
    this.#state = 'flowing';
    this.#pass(waiting, this.#isChunked ? waiting.length - 1 : 0);
    // A chunk that also blocks gives no new information, nor do bytes of which the socket took none.
    const isNews = !this.#is('blocked') || (!this.#isChunked && this.#waiting.length < waiting.length);
    this.#takenAt = isNews ? now : takenAt;
  }

  /** Sends the waiting bytes. When all of them were taken, ends the answer or lets the writer continue. */
  #proceed(): void {
    const keep = this.#ending ? 0 : this.#reserve;
    if (this.#waiting.length > keep) this.#pass(this.#waiting, keep);
    if (!this.#is('flowing')) return;
    if (!this.#ending) {
      this.#writer.resumeLater();
      return;
    }
    // The reader then has as long for the bytes that uWebSockets.js still holds as an idle connection is kept.
    const response = this.#response;
    response.cork(() => {
      this.#head?.write();
      response.end(undefined, this.#closes);
    });
    this.#finish();
  }

  /** Keeps a copy of what waits, because a chunk belongs to its writer, who waits when the socket is full. */
  #keep(): void | Promise<void> {
    if (this.#waiting.length === 0) return; // blocked without a reserve, after a flush: one more chunk is accepted
    this.#waiting = new Uint8Array(this.#waiting);
    if (this.#is('blocked')) return this.#writer.wait();
  }

  #finish(): void {
    this.#close();
    this.#owner.ended();
    this.#writer.resumeLater();
  }

  #close(): void {
    this.#state = 'closed';
    this.#waiting = NOTHING;
    this.#stallTimer.delete(this);
  }

  #assertOpen(): void {
    this.signal.throwIfAborted();
    if (this.#ending || this.#is('closed')) throw new TypeError('The stream was ended already.');
  }

  #rearmDue(now: number): boolean {
    return this.#armedAt !== null && now - this.#armedAt >= REARM_MS;
  }

  #is(state: 'flowing' | 'blocked' | 'closed'): boolean {
    return this.#state === state;
  }
}

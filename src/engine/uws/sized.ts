import type { Sink } from '../../pipeline/sink.ts';
import { corked } from '../cork.ts';
import type { HttpResponse } from './library.ts';
import { WaitingWriter } from '../waiting-writer.ts';
import { StallError, type StallTimer, type Stallable } from '../stall-timer.ts';

const CHUNK_BYTES = 64 * 1024;
const REARM_MS = 3000;
const NOTHING = new Uint8Array(0);

export interface SizedOptions {
  readonly response: Pick<HttpResponse, 'cork' | 'tryEnd' | 'getWriteOffset'>;
  /** Writes status and headers. Called in the cork of the first chunk. */
  readonly writeHead: () => void;
  /** The total number of bytes written, at least one: the value of Content-Length. */
  readonly length: number;
  readonly signal: () => AbortSignal;
  readonly stallTimer: StallTimer;
  /** Cuts the connection. The stream's `lost` is then called with the same reason. */
  readonly cut: (reason: unknown) => void;
  /** Called when the answer was ended cleanly. */
  readonly ended: () => void;
}

/**
 * An answer of known length on uWebSockets.js. `tryEnd` takes what the socket takes and buffers nothing. The rest of
 * a chunk waits here, and so does the writer. The answer ends by itself with its last byte.
 */
export class UwsSized implements Sink, Stallable {
  readonly chunkBytes = CHUNK_BYTES;
  /** Bytes of the body that the socket took. */
  sent = 0;
  readonly #options: SizedOptions;
  #state: 'head' | 'open' | 'closed' = 'head';
  #waiting: Uint8Array = NOTHING;
  readonly #writer = new WaitingWriter();
  #takenAt: number;
  #triedAt: number;

  constructor(options: SizedOptions) {
    this.#options = options;
    this.#takenAt = options.stallTimer.now();
    this.#triedAt = this.#takenAt;
  }

  /** Made on first use: most answers in one piece need none. */
  get signal(): AbortSignal {
    return this.#options.signal();
  }

  write(chunk: Uint8Array): void | Promise<void> {
    this.signal.throwIfAborted();
    if (this.#state === 'closed' || this.#waiting.length > 0)
      throw new TypeError('more is written than was announced, or without waiting');
    if (this.writeWhole(chunk)) return;
    this.#waiting = new Uint8Array(this.#waiting); // a copy: the chunk belongs to its writer
    return this.#writer.wait();
  }

  /** Writes bytes that nobody changes until the end, without a copy. Returns whether the socket took all now. */
  writeWhole(bytes: Uint8Array): boolean {
    this.#waiting = bytes.subarray(this.#send(bytes));
    if (this.#waiting.length === 0) return true;
    this.#takenAt = this.#triedAt;
    this.#options.stallTimer.add(this);
    return false;
  }

  flush(behind = NOTHING): void | Promise<void> {
    if (behind.length > 0) return this.write(behind); // nothing is held back
  }

  end(): void {
    this.signal.throwIfAborted();
    if (!this.#isClosed())
      throw new Error(`fewer than the ${this.#options.length} bytes announced were written`);
  }

  fail(error: unknown): void {
    if (!this.#isClosed()) this.#options.cut(error);
  }

  /** Called when the socket has room again. */
  writable(): void {
    if (this.#isClosed()) return;
    const taken = this.#send(this.#waiting);
    if (taken > 0) this.#takenAt = this.#triedAt;
    this.#waiting = this.#waiting.subarray(taken);
    if (this.#waiting.length > 0) return;
    this.#options.stallTimer.delete(this);
    this.#writer.resumeLater();
  }

  check(): void {
    const { stallTimer, cut } = this.#options;
    const now = stallTimer.now();
    if (now - this.#takenAt >= stallTimer.stallTimeoutMs) cut(new StallError(stallTimer.stallTimeoutMs));
    // A try shows whether the reader takes bytes, long before the socket is writable, and restarts its timer.
    else if (now - this.#triedAt >= REARM_MS) this.writable();
  }

  lost(reason: unknown): void {
    if (this.#isClosed()) return;
    this.#close();
    this.#writer.fail(reason);
  }

  /** Sends bytes and returns how many of them the socket took. */
  #send(bytes: Uint8Array): number {
    const { response, writeHead, length, stallTimer, ended } = this.#options;
    const [, done] = corked(response, () => {
      if (this.#state === 'head') writeHead();
      return response.tryEnd(bytes, length);
    });
    this.#state = 'open';
    this.#triedAt = stallTimer.now();
    const before = this.sent;
    this.sent = done ? length : response.getWriteOffset();
    if (!done) return this.sent - before;
    this.#close();
    ended();
    return bytes.length;
  }

  #close(): void {
    this.#state = 'closed';
    this.#options.stallTimer.delete(this);
  }

  #isClosed(): boolean {
    return this.#state === 'closed';
  }
}

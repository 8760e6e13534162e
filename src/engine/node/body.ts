import type { ServerResponse } from 'node:http';
import type { Sink } from '../../pipeline/sink.ts';
import { WaitingWriter } from '../waiting-writer.ts';
import { StallError, type StallTimer, type Stallable } from '../stall-timer.ts';

/** Writes are large, because the cost of node:http is per write. */
const CHUNK_BYTES = 65_536;
const NOTHING = new Uint8Array(0);

interface NodeBodyOptions {
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
  readonly stallTimer: StallTimer;
  readonly cut: (reason: unknown) => void;
}

/** The body of an answer on node:http: chunked, or of the length that its head announced, which is set beforehand. */
export class NodeBody implements Sink, Stallable {
  readonly chunkBytes = CHUNK_BYTES;
  readonly signal: AbortSignal;
  /** Bytes handed to node. */
  sent = 0;
  readonly #options: NodeBodyOptions;
  #state: 'flowing' | 'blocked' | 'over' = 'flowing';
  readonly #writer = new WaitingWriter();
  /** When the reader last took what was buffered. */
  #takenAt = 0;
  /** Writes that node still holds for the kernel. */
  #unsent = 0;
  readonly #taken = (): void => {
    this.#unsent--;
    if (this.#unsent === 0) this.#drained();
  };

  constructor(options: NodeBodyOptions) {
    this.#options = options;
    this.signal = options.signal;
    options.response.on('drain', () => this.#drained());
    options.response.on('finish', () => this.#drained());
  }

  write(chunk: Uint8Array): void | Promise<void> {
    // node keeps a reference to bytes that it could not send at once, and the writer reuses their memory.
    return this.#writeOwned(Buffer.from(chunk));
  }

  /** Writes bytes that no code changes any more, at the pace of the reader. */
  async writeAll(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      await this.#writeOwned(bytes.subarray(at, at + CHUNK_BYTES));
    }
  }

  #writeOwned(chunk: Uint8Array): void | Promise<void> {
    this.#assertOpen();
    if (chunk.length === 0) return;
    this.#unsent++;
    this.sent += chunk.length;
    if (this.#options.response.write(chunk, this.#taken)) return;
    this.#block();
    return this.#writer.wait();
  }

  /** Resolves when the kernel has everything. Bytes that node still holds are lost when the connection is cut. */
  flush(behind = NOTHING): void | Promise<void> {
    void this.#writeOwned(behind); // the rest waits for it, too
    if (this.#unsent === 0 || this.#state === 'over') return;
    this.#block();
    return this.#writer.wait();
  }

  end(): void | Promise<void> {
    this.#assertOpen();
    this.#options.response.end();
    if (this.#options.response.writableFinished) {
      this.#close();
      return;
    }
    this.#block();
    return this.#writer.wait();
  }

  fail(error: unknown): void {
    if (this.#state !== 'over') this.#options.cut(error);
  }

  check(): void {
    const { response, stallTimer, cut } = this.#options;
    const now = stallTimer.now();
    // This answer is queued behind another one on the same connection, so its own reader has not stalled.
    if (response.socket === null) this.#takenAt = now;
    else if (now - this.#takenAt >= stallTimer.stallTimeoutMs) cut(new StallError(stallTimer.stallTimeoutMs));
  }

  lost(reason: unknown): void {
    if (this.#state === 'over') return;
    this.#close();
    this.#writer.fail(reason);
  }

  #drained(): void {
    if (this.#state === 'over') return;
    this.#options.stallTimer.delete(this);
    if (this.#options.response.writableEnded) {
      if (!this.#options.response.writableFinished) return;
      this.#close();
    } else {
      this.#state = 'flowing';
    }
    this.#writer.resume();
  }

  #block(): void {
    if (this.#state === 'flowing') this.#takenAt = this.#options.stallTimer.now();
    this.#state = 'blocked';
    this.#options.stallTimer.add(this);
  }

  #close(): void {
    this.#state = 'over';
    this.#options.stallTimer.delete(this);
  }

  #assertOpen(): void {
    this.signal.throwIfAborted();
    if (this.#options.response.writableEnded) throw new TypeError('The stream was ended already.');
  }
}

import type { Sink } from '../stream/sink.ts';
import { CORK_BYTES, corked } from './cork.ts';
import type { HttpResponse } from './uws.ts';
import { StallError, type Watch, type Watched } from './watch.ts';

/** Around a chunk: CR LF, four hex digits, CR LF; with room to spare. */
const FRAME_BYTES = 16;
const CHUNK_BYTES = 15_800;

/**
 * Bytes kept back, of what a blocked reader gets, for probes. Only a write tells whether the reader has taken what was
 * before it, and at the end of a stream no further chunk would come to write.
 */
const RESERVE_BYTES = 64;
const PROBE_BYTES = 1;
/** uWebSockets.js's own timer (10 s, this build 30 s) counts from the last blocked write, whatever the reader took since. */
const REARM_MS = 3000;
/** After a block the kernel's own buffers still settle, and most readers go on soon: probes are frequent at first. */
const EAGER_MS = 5000;

const NOTHING = new Uint8Array(0);

/** The part of uWebSockets.js's response that a stream uses. */
export type StreamResponse = Pick<HttpResponse, 'cork' | 'write' | 'end' | 'pause' | 'resume'>;

export interface StreamOptions {
  readonly response: StreamResponse;
  /** Writes status and headers; called in the cork of the first chunk. */
  readonly writeHead: () => void;
  /** Bytes that `writeHead` writes at most. */
  readonly headBytes: number;
  readonly signal: AbortSignal;
  readonly watch: Watch;
  /** Cuts the connection; the stream then gets `lost` with the same reason. */
  readonly cut: (reason: unknown) => void;
  /** The stream was ended cleanly. */
  readonly ended: () => void;
}

/**
 * - `flowing`: uWebSockets.js takes what is written.
 * - `blocked`: it holds bytes that the socket did not take; whatever else comes waits here.
 * - `over`: ended, or lost; the response must not be touched any more.
 */
type State = 'flowing' | 'blocked' | 'over';

/**
 * A chunked answer on uWebSockets.js. At most one cork (16 KB) is buffered there and one chunk of the writer's here,
 * however long the reader stalls.
 */
export class UwsStream implements Sink, Watched {
  readonly chunkBytes = CHUNK_BYTES;
  readonly signal: AbortSignal;
  private readonly options: StreamOptions;
  private state: State = 'flowing';
  private headSent = false;
  /** Copied from the writer's chunks and not yet with uWebSockets.js. */
  private waiting = NOTHING;
  /** The writer who waits for room, or for the end. */
  private writer: { resolve: () => void; reject: (reason: unknown) => void } | null = null;
  private writerWaits: Promise<void> | null = null;
  private ending = false;
  /** When the reader last showed that it takes bytes. As all times here, by the watch. */
  private takenAt = 0;
  /** When uWebSockets.js's timer for this connection was last set; null while it does not run. */
  private armedAt: number | null = null;

  constructor(options: StreamOptions) {
    this.options = options;
    this.signal = options.signal;
  }

  write(chunk: Uint8Array): void | Promise<void> {
    this.assertOpen();
    if (this.waiting.length > 0) {
      this.waiting = Buffer.concat([this.waiting, chunk]);
      if (this.state === 'flowing') this.sendWaiting(0);
    } else {
      const sent = this.state === 'flowing' ? this.send(chunk, chunk.length) : 0;
      this.waiting = sent === chunk.length ? NOTHING : Buffer.from(chunk.subarray(sent));
    }
    // Blocked with nothing at hand: one more chunk is welcome, for then a probe has bytes and the next one is ready.
    if (this.waiting.length > 0) return this.wait();
  }

  flush(): void {
    if (this.state === 'flowing') this.sendWaiting(0);
  }

  end(): void | Promise<void> {
    this.assertOpen();
    this.ending = true;
    this.proceed(0);
    if (!this.isOver()) return this.wait();
  }

  fail(error: unknown): void {
    if (this.state !== 'over') this.options.cut(error);
  }

  /** The socket has room again. Must write what there is: uWebSockets.js does not drain by itself when it asks us. */
  writable(): void {
    if (this.state === 'over') return;
    this.takenAt = this.options.watch.now();
    this.armedAt = null;
    this.state = 'flowing';
    if (this.waiting.length === 0) this.drain();
    this.proceed(RESERVE_BYTES);
  }

  check(): void {
    if (this.state === 'over') return;
    const { watch, cut } = this.options;
    const now = watch.now();
    if (this.state === 'flowing') {
      this.sendWaiting(0); // nobody wrote for a while: the reserve is due
    } else if (now - this.takenAt >= watch.stallTimeoutMs) {
      cut(new StallError(watch.stallTimeoutMs));
    } else if (now - this.takenAt < EAGER_MS || this.rearmDue(now)) {
      this.probe(now);
    }
    if (!this.isOver() && this.rearmDue(now)) this.rearm(now);
    if (!this.isBlocked() && this.armedAt === null) watch.delete(this);
  }

  /** The connection is gone, or was cut: nothing may touch the response from here on. */
  lost(reason: unknown): void {
    if (this.state === 'over') return;
    this.close();
    this.writer?.reject(reason);
    this.writer = null;
  }

  /**
   * Sees whether the reader has taken what blocked: a write is accepted only when all before it has gone to the kernel.
   * The kernel says "writable" at a third of its buffer free, which at 5 kB/s and 2 MB takes minutes; it takes a write
   * after the first bytes.
   */
  private probe(now: number): void {
    if (this.waiting.length === 0) {
      this.drain();
      return;
    }
    const { takenAt } = this;
    this.state = 'flowing';
    const sent = this.send(this.waiting, Math.min(PROBE_BYTES, this.waiting.length));
    this.waiting = this.waiting.subarray(sent);
    if (this.isBlocked()) {
      this.takenAt = takenAt;
      return;
    }
    this.takenAt = now;
    this.proceed(RESERVE_BYTES);
  }

  /** Sends what waits, but for a reserve of `keep` bytes while more is to come; then ends, or lets the writer go on. */
  private proceed(keep: number): void {
    this.sendWaiting(this.ending ? 0 : keep);
    if (this.state !== 'flowing') return;
    if (!this.ending) {
      this.releaseWriter();
      // The reserve goes out with the next chunk, or when the watch comes by.
      if (this.waiting.length > 0) this.options.watch.add(this);
      return;
    }
    const { response, writeHead } = this.options;
    response.cork(() => {
      if (!this.headSent) writeHead();
      response.end();
    });
    this.close();
    this.releaseWriter();
    this.options.ended();
  }

  private sendWaiting(keep: number): void {
    if (this.state !== 'flowing' || this.waiting.length <= keep) return;
    const sent = this.send(this.waiting, this.waiting.length - keep);
    this.waiting = sent === this.waiting.length ? NOTHING : this.waiting.subarray(sent);
  }

  /** Writes the first `length` bytes, a cork at a time, until the socket is full. Returns how many are out of our hands. */
  private send(bytes: Uint8Array, length: number): number {
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

  private block(): void {
    const now = this.options.watch.now();
    this.takenAt = now; // all before this write was taken
    this.armedAt = now; // a blocked write sets the timer
    this.state = 'blocked';
    this.options.watch.add(this);
  }

  /** An empty cork hands on what uWebSockets.js holds. */
  private drain(): void {
    this.options.response.cork(() => undefined);
  }

  private rearmDue(now: number): boolean {
    return this.armedAt !== null && now - this.armedAt >= REARM_MS;
  }

  /** Sets the connection's timer anew without writing: resuming does that, and nothing is read or lost in between. */
  private rearm(now: number): void {
    this.armedAt = now;
    this.options.response.pause();
    this.options.response.resume();
  }

  private wait(): Promise<void> {
    this.writerWaits ??= new Promise<void>((resolve, reject) => {
      this.writer = { resolve, reject };
    });
    return this.writerWaits;
  }

  /** Not from within uWebSockets.js's callback: what the writer does next may close the connection under its feet. */
  private releaseWriter(): void {
    const { writer } = this;
    this.writer = null;
    this.writerWaits = null;
    if (writer !== null) setImmediate(writer.resolve);
  }

  private close(): void {
    this.state = 'over';
    this.waiting = NOTHING;
    this.options.watch.delete(this);
  }

  private assertOpen(): void {
    this.signal.throwIfAborted();
    if (this.ending) throw new TypeError('The stream was ended already.');
  }

  private isOver(): boolean {
    return this.state === 'over';
  }

  private isBlocked(): boolean {
    return this.state === 'blocked';
  }
}

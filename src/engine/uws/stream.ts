import type { Sink } from '../../stream/sink.ts';
import { CORK_BYTES } from '../cork.ts';
import { Outlet, type OutletOptions } from './outlet.ts';
import { StallError, type Watched } from '../stall-timer.ts';

/** With the reserve and a chunk's frame this is the most that one cork carries. */
const CHUNK_BYTES = 15_800;

/**
 * Bytes of each chunk that are kept back until the next one comes, or a flush, or the watch: when the socket is full
 * there must be something to probe it with, and the writer, who waits, brings nothing.
 */
const RESERVE_BYTES = 64;

const NOTHING = new Uint8Array(0);
/** Where reserve and chunk are joined; what is written from it is copied before anybody else can use it. */
const scratch = Buffer.allocUnsafeSlow(CORK_BYTES);

export interface StreamOptions extends OutletOptions {
  readonly signal: AbortSignal;
  /** Cuts the connection; the stream then gets `lost` with the same reason. */
  readonly cut: (reason: unknown) => void;
  /** The stream was ended cleanly. */
  readonly ended: () => void;
}

/**
 * A chunked answer on uWebSockets.js. However long its reader stalls, one cork (16 KB) is buffered there and what a chunk
 * larger than `chunkBytes` has over it here.
 */
export class UwsStream implements Sink, Watched {
  readonly chunkBytes = CHUNK_BYTES;
  readonly signal: AbortSignal;
  /** Bytes taken from the writer. */
  sent = 0;
  private readonly options: StreamOptions;
  private readonly outlet: Outlet;
  /** Copied from the writer's chunks and not yet with uWebSockets.js: the reserve, and what waits for the reader. */
  private waiting = NOTHING;
  /** The writer who waits for room, or for the end. */
  private writer: { resolve: () => void; reject: (reason: unknown) => void } | null = null;
  private writerWaits: Promise<void> | null = null;
  private ending = false;

  constructor(options: StreamOptions) {
    this.options = options;
    this.signal = options.signal;
    this.outlet = new Outlet(options);
    options.watch.add(this);
  }

  write(chunk: Uint8Array): void | Promise<void> {
    this.assertOpen();
    this.sent += chunk.length;
    const bytes = this.joined(chunk);
    const keep = Math.min(RESERVE_BYTES, bytes.length);
    const sent = this.outlet.send(bytes, bytes.length - keep);
    this.waiting = new Uint8Array(bytes.subarray(sent)); // a copy
    // Blocked without a reserve, after a flush: one more chunk is welcome.
    if (this.isBlocked() && this.waiting.length > 0) return this.wait();
  }

  flush(): void {
    this.sendWaiting(0);
  }

  end(): void | Promise<void> {
    this.assertOpen();
    this.ending = true;
    this.proceed();
    if (!this.isClosed()) return this.wait();
  }

  fail(error: unknown): void {
    if (!this.isClosed()) this.options.cut(error);
  }

  /** The socket has room again. Must write what there is: uWebSockets.js does not drain by itself when it asks us. */
  writable(): void {
    if (this.isClosed()) return;
    this.outlet.opened();
    this.outlet.drain();
    this.proceed();
  }

  check(): void {
    if (this.outlet.stalled()) {
      this.options.cut(new StallError(this.options.watch.stallTimeoutMs));
      return;
    }
    if (this.isBlocked()) {
      this.waiting = this.waiting.subarray(this.outlet.probe(this.waiting));
      this.proceed();
    } else {
      this.sendWaiting(0);
    }
    this.outlet.rearm();
  }

  /** The connection is gone, or was cut: nothing may touch the response from here on. */
  lost(reason: unknown): void {
    if (this.isClosed()) return;
    this.outlet.state = 'closed';
    this.close();
    this.writer?.reject(reason);
    this.writer = null;
  }

  /** Sends what waits and, when all of it was taken, ends or lets the writer go on. */
  private proceed(): void {
    this.sendWaiting(this.ending ? 0 : RESERVE_BYTES);
    if (this.outlet.state !== 'flowing') return;
    if (this.ending) {
      this.outlet.end();
      this.close();
      this.options.ended();
    }
    this.releaseWriter();
  }

  private sendWaiting(keep: number): void {
    if (this.waiting.length <= keep) return;
    const sent = this.outlet.send(this.waiting, this.waiting.length - keep);
    this.waiting = sent === this.waiting.length ? NOTHING : this.waiting.subarray(sent);
  }

  private joined(chunk: Uint8Array): Uint8Array {
    const { waiting } = this;
    if (waiting.length === 0) return chunk;
    const length = waiting.length + chunk.length;
    if (length > scratch.length) return Buffer.concat([waiting, chunk]);
    scratch.set(waiting);
    scratch.set(chunk, waiting.length);
    return scratch.subarray(0, length);
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
    this.waiting = NOTHING;
    this.options.watch.delete(this);
  }

  private assertOpen(): void {
    this.signal.throwIfAborted();
    if (this.ending) throw new TypeError('The stream was ended already.');
  }

  private isClosed(): boolean {
    return this.outlet.state === 'closed';
  }

  private isBlocked(): boolean {
    return this.outlet.state === 'blocked';
  }
}

import type { Transform } from 'node:stream';
import { FlushedTransform } from './flushed-transform.ts';
import type { Sink } from './sink.ts';

/**
 * Input is compressed in batches of this many bytes. Each batch is flushed, so a reader can decode all of its output.
 * 32 KiB costs 15 % of brotli's ratio, 128 KiB gains 2 %.
 */
const BATCH_BYTES = 65_536;
/**
 * Output is gathered until it fills a chunk of the sink, for so many milliseconds at most. Clients pay for each chunk:
 * the fetch of Node.js 24 reads 48.8 MB of gzip in chunks of 3.4 KB in 5.0 s, and in chunks of 16 KB in 1.9 s.
 */
const SEND_MS = 200;

const NOTHING = Buffer.alloc(0);

/**
 * While one batch is compressed on another thread, the next one is filled. The writer waits when both are full. So a
 * stalled reader costs a batch, the output of another, the compressor's own memory and a chunk.
 */
export class Compressor implements Sink {
  readonly chunkBytes = BATCH_BYTES;
  readonly signal: AbortSignal;
  readonly #transform: FlushedTransform;
  readonly #sink: Sink;
  #batch = NOTHING;
  #spare = NOTHING;
  #filled = 0;
  /** Compressed bytes that wait until they fill a chunk or are due. */
  #chunk = NOTHING;
  #gathered = 0;
  /** Resolves, and never rejects, when the batch before is compressed and its output taken. Null: there is none. */
  #busy: Promise<void> | null = null;
  /** Whether to send everything written so far, even if it does not fill a chunk. */
  #due = false;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;
  #failure: { readonly error: unknown } | null = null;

  constructor(transform: Transform, sink: Sink) {
    this.#transform = new FlushedTransform(transform);
    this.#sink = sink;
    this.signal = sink.signal;
    if (sink.signal.aborted) this.#free();
    else sink.signal.addEventListener('abort', this.#free, { once: true });
  }

  write(chunk: Uint8Array): void | Promise<void> {
    this.#assertUsable();
    const room = BATCH_BYTES - this.#filled;
    this.#fill(chunk.length > room ? chunk.subarray(0, room) : chunk);
    if (chunk.length < room) return;
    // A chunk larger than advised is copied before its memory changes.
    const rest = chunk.length > room ? Buffer.from(chunk.subarray(room)) : null;
    const submitted = this.#submit();
    return rest === null ? submitted : this.#writeAfter(submitted, rest);
  }

  /** With nothing left to compress, resolves when the work under way is done and the sink has its output. */
  flush(behind?: Uint8Array): void | Promise<void> {
    if (behind) return this.#flushAndWrite(behind);
    this.#assertUsable();
    this.#due = true;
    if (this.#busy === null) this.#sendDue();
    else return this.#filled === 0 ? this.#settled(this.#busy) : this.#submitAfter(this.#busy);
  }

  async end(): Promise<void> {
    this.#assertUsable();
    await this.#submit();
    await this.#busy;
    this.#assertUsable();
    this.#ended = true;
    await this.#work(() => this.#transform.end(), true);
    this.#assertWhole();
    this.#free();
  }

  fail(error: unknown): void {
    this.#free();
    this.#sink.fail(error);
  }

  /** What is compressed while a batch is under way has a piece of its own. */
  async #flushAndWrite(behind: Uint8Array): Promise<void> {
    await this.flush();
    await this.write(behind);
    await this.flush();
  }

  async #settled(busy: Promise<void>): Promise<void> {
    await busy;
    this.#assertWhole();
  }

  #fill(chunk: Uint8Array): void {
    if (this.#batch.length === 0) this.#batch = Buffer.allocUnsafeSlow(BATCH_BYTES);
    this.#batch.set(chunk, this.#filled);
    this.#filled += chunk.length;
    this.#timer ??= setTimeout(() => this.#timeIsUp(), SEND_MS);
  }

  async #writeAfter(submitted: void | Promise<void>, rest: Uint8Array): Promise<void> {
    await submitted;
    await this.write(rest);
  }

  #timeIsUp(): void {
    this.#due = true;
    if (this.#busy === null) this.#sendDue();
  }

  /** Hands the batch to the compressor. Returns a promise when that has to wait for the batch before. */
  #submit(): void | Promise<void> {
    if (this.#filled === 0) return;
    if (this.#busy !== null) return this.#submitAfter(this.#busy);
    this.#compressBatch();
  }

  async #submitAfter(busy: Promise<void>): Promise<void> {
    await busy;
    this.#assertUsable();
    return this.#submit();
  }

  /** Sends everything there is. Called when nothing is under way. */
  #sendDue(): void {
    if (this.#filled > 0) this.#compressBatch();
    else if (this.#gathered > 0) this.#busy = this.#work(() => Promise.resolve([]), true);
    else this.#nothingIsDue();
  }

  #compressBatch(): void {
    const bytes = this.#batch.subarray(0, this.#filled);
    [this.#batch, this.#spare] = [this.#spare, this.#batch];
    this.#filled = 0;
    this.#busy = this.#work(() => this.#transform.compress(bytes), this.#due);
  }

  /** Gathers the output of `make`, and sends full chunks, or all when it is due. Never rejects: `failure` has the error. */
  async #work(make: () => Promise<readonly Uint8Array[]>, isDue: boolean): Promise<void> {
    if (isDue) this.#nothingIsDue();
    try {
      for (const output of await make()) await this.#gather(output);
      if (isDue) await this.#sendGathered();
      else if (this.#due && this.#filled === 0) {
        this.#nothingIsDue();
        await this.#sendGathered();
      }
    } catch (error) {
      this.#failure ??= { error };
      this.#free();
    }
    this.#busy = null;
    if (this.#due) this.#sendDue();
  }

  async #gather(output: Uint8Array): Promise<void> {
    const { chunkBytes } = this.#sink;
    if (this.#chunk.length === 0) this.#chunk = Buffer.allocUnsafeSlow(chunkBytes);
    for (let at = 0; at < output.length;) {
      const part = output.subarray(at, at + chunkBytes - this.#gathered);
      this.#chunk.set(part, this.#gathered);
      this.#gathered += part.length;
      at += part.length;
      if (this.#gathered === chunkBytes) await this.#writeChunk();
    }
  }

  async #sendGathered(): Promise<void> {
    if (this.#gathered > 0) await this.#writeChunk();
    await this.#sink.flush();
  }

  async #writeChunk(): Promise<void> {
    const chunk = this.#chunk.subarray(0, this.#gathered);
    this.#gathered = 0;
    const full = this.#sink.write(chunk);
    if (!full) return;
    this.#spare = NOTHING; // its bytes are compressed, so a stalled reader need not keep it
    await full;
  }

  #nothingIsDue(): void {
    this.#due = false;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Releases all memory, and settles the calls that wait for the compressor. */
  readonly #free = (): void => {
    this.signal.removeEventListener('abort', this.#free);
    this.#nothingIsDue();
    this.#transform.destroy(this.signal.reason);
    this.#batch = NOTHING;
    this.#spare = NOTHING;
    this.#filled = 0;
    this.#chunk = NOTHING;
    this.#gathered = 0;
  };

  #assertUsable(): void {
    this.#assertWhole();
    if (this.#ended) throw new TypeError('The compressor was ended already.');
  }

  #assertWhole(): void {
    this.signal.throwIfAborted();
    if (this.#failure !== null) throw this.#failure.error;
  }
}

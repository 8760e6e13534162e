import { once } from 'node:events';
import { createRequire } from 'node:module';
import { Worker, type Transferable } from 'node:worker_threads';
import { asset } from '../asset.ts';
import { END_OF_STREAM } from '../rows/arrow/messages.ts';
import type { Sink } from './sink.ts';
import { codeOf } from '../base/error-reason.ts';

/** The optional package that writes Parquet. parquet-thread.mjs imports it. */
const LIBRARY = 'parquet-wasm';
const THREAD = asset('pipeline/parquet-thread.mjs');
/** A row group ends at this number of rows, or of bytes in the memory of the library. Larger ones compress hardly better. */
const GROUP = { rows: 1 << 17, bytes: 1 << 24 };

const modules = createRequire(import.meta.url);

/** Why this process cannot write Parquet. Null when it can. */
export function whyNoParquet(): string | null {
  try {
    modules.resolve(LIBRARY);
    return null;
  } catch (error) {
    if (codeOf(error) !== 'MODULE_NOT_FOUND') throw error;
    return `format parquet needs the package ${LIBRARY}, which this server does not have; its operator installs it with: npm install ${LIBRARY}`;
  }
}

/**
 * A sink that takes the messages of an Arrow IPC stream without the first one, `head`, and writes a file of Parquet into
 * `file`. A flush follows whole messages. The work is done in a thread, because a row group takes a core for up to half a
 * second. `facts` are the metadata of the file. `end` writes its last byte, but does not end `file`.
 */
export class ParquetSink implements Sink {
  readonly chunkBytes = 1 << 20;
  readonly signal: AbortSignal;
  readonly #thread: Worker;
  /** The streams for the thread: one is filled while the thread reads the other. */
  readonly #streams: [SharedStream, SharedStream];
  /** Resolves when the thread has read the stream that it was given last. */
  #read: Promise<unknown> = Promise.resolve();
  /** Resolves when the file has its last byte. */
  readonly #written: Promise<void>;
  /**
   * Rejects when the file or the thread fails. A file that fails makes the thread fail, too, but with a copy of the error, which
   * is no AppError. The file's own comes first.
   */
  readonly #failed: Promise<never>;

  constructor(head: Uint8Array, file: Sink, facts: readonly (readonly [name: string, value: string])[]) {
    this.signal = file.signal;
    this.#streams = [new SharedStream(head), new SharedStream(head)];
    const output = new TransformStream<Uint8Array>();
    const workerData = { file: output.writable, group: GROUP, facts };
    const transferList = [output.writable] as unknown as Transferable[];
    this.#thread = new Worker(THREAD, { name: 'parquet', workerData, transferList });
    this.#written = output.readable.pipeTo(
      new WritableStream<Uint8Array>({ write: (bytes) => file.write(bytes) }),
    );
    const thread = new Promise<never>((_, reject) => this.#thread.once('error', reject));
    this.#failed = Promise.race([this.#written.then(() => thread), thread]);
    for (const one of [this.#written, this.#failed]) one.catch(() => undefined); // see #unlessFailed
  }

  write(chunk: Uint8Array): void {
    this.#streams[0].add(chunk);
  }

  async flush(): Promise<void> {
    const [full] = this.#streams;
    if (full.isEmpty) return;
    await this.#unlessFailed(this.#read);
    this.#read = once(this.#thread, 'message');
    this.#read.catch(() => undefined); // see #unlessFailed
    this.#thread.postMessage(full.take());
    this.#streams.reverse();
  }

  async end(): Promise<void> {
    await this.flush();
    this.#thread.postMessage(null);
    await this.#unlessFailed(this.#written);
  }

  fail(): void {
    // the file stays unfinished
  }

  /** Ends the thread, which gives its memory back. Call once, also after a failure. */
  async close(): Promise<void> {
    await this.#thread.terminate();
  }

  /** A file or a thread that has failed takes nothing more, and the thread does not say so in its stream. */
  async #unlessFailed(work: Promise<unknown>): Promise<void> {
    work.catch(() => undefined); // when another one fails first
    await Promise.race([this.#failed, work]);
  }
}

/**
 * An Arrow IPC stream in memory that a thread reads without a copy. A new buffer for each stream would be garbage of
 * megabytes, for which V8 collects the whole heap several times a second.
 */
class SharedStream {
  readonly #head: Uint8Array;
  #memory = new Uint8Array(new SharedArrayBuffer(1 << 20));
  #filled: number;

  constructor(head: Uint8Array) {
    this.#head = head;
    this.#filled = head.length;
  }

  get isEmpty(): boolean {
    return this.#filled === this.#head.length;
  }

  add(bytes: Uint8Array): void {
    const end = this.#filled + bytes.length;
    if (end > this.#memory.length) this.#grow(end);
    this.#memory.set(bytes, this.#filled);
    this.#filled = end;
  }

  /** The whole stream, which is empty again with the next bytes. */
  take(): Uint8Array {
    this.#memory.set(this.#head);
    this.add(END_OF_STREAM);
    const stream = this.#memory.subarray(0, this.#filled);
    this.#filled = this.#head.length;
    return stream;
  }

  #grow(bytes: number): void {
    const grown = new Uint8Array(new SharedArrayBuffer(Math.max(bytes, 2 * this.#memory.length)));
    grown.set(this.#memory.subarray(0, this.#filled));
    this.#memory = grown;
  }
}

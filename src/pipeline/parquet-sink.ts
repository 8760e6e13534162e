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
  readonly #head: Uint8Array;
  readonly #thread: Worker;
  readonly #rows: WritableStreamDefaultWriter<Uint8Array>;
  /** Resolves when the file has its last byte. */
  readonly #written: Promise<void>;
  readonly #failed: Promise<never>;
  #parts: Uint8Array[] = [];

  constructor(head: Uint8Array, file: Sink, facts: readonly (readonly [name: string, value: string])[]) {
    this.#head = head;
    this.signal = file.signal;
    const input = new TransformStream<Uint8Array>();
    const output = new TransformStream<Uint8Array>();
    const ends = [input.readable, output.writable] as unknown as Transferable[];
    const workerData = { rows: input.readable, file: output.writable, group: GROUP, facts };
    this.#thread = new Worker(THREAD, { name: 'parquet', workerData, transferList: ends });
    this.#rows = input.writable.getWriter();
    this.#written = output.readable.pipeTo(
      new WritableStream<Uint8Array>({ write: (bytes) => file.write(bytes) }),
    );
    this.#failed = new Promise((_, reject) => this.#thread.once('error', reject));
    for (const one of [this.#written, this.#failed, this.#rows.closed]) one.catch(() => undefined); // see #unlessFailed
  }

  write(chunk: Uint8Array): void {
    this.#parts.push(Buffer.from(chunk));
  }

  async flush(): Promise<void> {
    if (this.#parts.length === 0) return;
    const stream = Buffer.concat([this.#head, ...this.#parts, END_OF_STREAM]);
    this.#parts = [];
    await this.#unlessFailed(this.#rows.write(stream));
  }

  async end(): Promise<void> {
    await this.flush();
    await this.#unlessFailed(this.#rows.close());
    await this.#unlessFailed(this.#written);
  }

  fail(): void {
    // the file stays unfinished
  }

  /** Ends the thread, which gives its memory back. Call once, also after a failure. */
  async close(): Promise<void> {
    await this.#thread.terminate();
  }

  /** A thread that has failed takes nothing more, and does not say so in its streams. */
  async #unlessFailed(work: Promise<void>): Promise<void> {
    work.catch(() => undefined); // when the thread fails first
    await Promise.race([work, this.#failed]);
  }
}

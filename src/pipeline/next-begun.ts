import type { Sink } from './sink.ts';

const LF = 0x0a;

/** What goes behind a flush. `isPart`: the next write begins with these bytes, which are then left out of it. */
export interface Beginning {
  readonly bytes: Uint8Array;
  readonly isPart: boolean;
}

/**
 * A sink for lines that all have come, in whole pieces, when they were flushed. uWebSockets.js writes the end of a chunk
 * only with the next one, and many clients take no chunk before its end (RFC 9112, 7.1). So what the next line begins with
 * goes behind a flush: nobody waits for the end of that. A write must follow the last flush.
 */
export class NextBegun implements Sink {
  readonly chunkBytes: number;
  readonly signal: AbortSignal;
  readonly #sink: Sink;
  readonly #beginning: Beginning;
  #isAtLineEnd = false;
  #isBegun = false;
  /** The write that the sink has not taken yet. Null: it has. */
  #blocked: Promise<void> | null = null;

  constructor(sink: Sink, beginning: Beginning) {
    this.chunkBytes = sink.chunkBytes;
    this.signal = sink.signal;
    this.#sink = sink;
    this.#beginning = beginning;
  }

  write(chunk: Uint8Array): void | Promise<void> {
    if (chunk.length === 0) return;
    this.#isAtLineEnd = chunk.at(-1) === LF;
    const { bytes, isPart } = this.#beginning;
    const written = this.#sink.write(this.#isBegun && isPart ? chunk.subarray(bytes.length) : chunk);
    this.#isBegun = false;
    if (!written) return;
    const blocked = written.then(() => {
      if (this.#blocked === blocked) this.#blocked = null;
    });
    return (this.#blocked = blocked);
  }

  flush(): void | Promise<void> {
    if (this.#blocked) return this.#blocked.then(() => this.flush());
    if (!this.#isAtLineEnd || this.#isBegun) return this.#sink.flush();
    this.#isBegun = true;
    return this.#sink.flush(this.#beginning.bytes);
  }

  end(): void | Promise<void> {
    return this.#sink.end();
  }

  fail(error: unknown): void {
    this.#sink.fail(error);
  }
}

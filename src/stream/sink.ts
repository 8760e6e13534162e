/**
 * Sink: everything that takes bytes (HTTP response, compressor, file). Promises of every implementation:
 *
 * - `write` takes all of `chunk` or copies it before it returns: the chunk is a view of memory that the caller reuses at
 *   once. It returns nothing when it takes more right away, else a promise that resolves when the next chunk is welcome
 *   (backpressure). The promise rejects, or `write` throws, with `signal.reason` once `signal` is aborted.
 * - `end` finishes cleanly: the only way a reader may take what came for whole.
 * - `fail` cuts: what is behind the sink must show that the content is not whole. It never ends cleanly. Idempotent.
 * - `signal` is aborted when nobody wants the bytes any more (client gone, stall, shutdown) or `fail` was called.
 * - `flush` asks that what was written so far travels now; a sink that never holds back does nothing.
 */
export interface Sink {
  /** The chunk size in bytes this sink takes best; larger chunks are allowed. */
  readonly chunkBytes: number;
  readonly signal: AbortSignal;
  write(chunk: Uint8Array): void | Promise<void>;
  flush(): void | Promise<void>;
  end(): void | Promise<void>;
  fail(error: unknown): void;
}

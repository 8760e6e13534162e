/**
 * Sink: anything that takes bytes, such as an HTTP response, a compressor or a file. Every implementation promises:
 *
 * - `write` takes all of `chunk` or copies it before it returns, because the caller reuses that memory at once. It
 *   returns nothing when the sink takes more right away. Otherwise it returns a promise that resolves when the sink
 *   takes the next chunk (backpressure). Once `signal` is aborted, the promise rejects, or `write` throws, with
 *   `signal.reason`.
 * - `end` finishes cleanly. Only a clean end means that the content is complete.
 * - `fail` cuts the content: whatever reads from the sink must be able to see that the content is not complete. The
 *   sink then never ends cleanly. Idempotent.
 * - `signal` is aborted when the bytes are no longer wanted (client gone, stall, shutdown) or `fail` was called.
 * - `flush` asks the sink to send everything written so far, and `behind`, which the wire has in a piece of its own. No
 *   write is under way then. A sink that never holds bytes back writes `behind`, or does nothing.
 */
export interface Sink {
  /** The chunk size in bytes this sink takes best; larger chunks are allowed. */
  readonly chunkBytes: number;
  readonly signal: AbortSignal;
  write(chunk: Uint8Array): void | Promise<void>;
  flush(behind?: Uint8Array): void | Promise<void>;
  end(): void | Promise<void>;
  fail(error: unknown): void;
}

/** Writes a message before the stream is cut. It is lost when the reader is gone. Never rejects. */
export async function writeBeforeCut(sink: Sink, text: string): Promise<void> {
  try {
    await sink.write(Buffer.from(text));
    await sink.flush();
    await sink.flush(); // the first flush may only start the sink's work, this one waits for it
  } catch {
    // The caller reports what broke the stream. That the reader does not get the line is not worth a report.
  }
}

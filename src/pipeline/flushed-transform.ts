import type { Transform } from 'node:stream';

/** A zlib transform that flushes each write, one at a time. zlib calls nothing back then, so `destroy` rejects the call. */
export class FlushedTransform {
  readonly #transform: Transform;
  #output: Uint8Array[] = [];
  /** Rejects the call under way. Null when there is none. */
  #reject: ((reason: unknown) => void) | null = null;

  constructor(transform: Transform) {
    this.#transform = transform;
    transform.on('data', (chunk: Uint8Array) => this.#output.push(chunk));
    transform.on('error', (error) => this.#reject?.(error));
  }

  /** Resolves to output from which a decoder restores all of `bytes`, which must not change until then. */
  compress(bytes: Uint8Array): Promise<readonly Uint8Array[]> {
    // Output that is pushed before this callback reaches the listener within the same turn.
    return this.#call((resolve) => this.#transform.write(bytes, (error) => error ?? setImmediate(resolve)));
  }

  /** Ends the transform and resolves to its last output. */
  end(): Promise<readonly Uint8Array[]> {
    return this.#call((resolve) => this.#transform.once('end', resolve).end());
  }

  /** Releases the memory at once instead of at the next garbage collection. */
  destroy(reason: unknown): void {
    this.#transform.destroy();
    this.#reject?.(reason);
    this.#output = [];
  }

  async #call(start: (resolve: () => void) => void): Promise<readonly Uint8Array[]> {
    try {
      await new Promise<void>((resolve, reject) => {
        this.#reject = reject;
        if (this.#transform.destroyed) reject(new Error('The compressor was given back.'));
        else start(resolve);
      });
      return this.#output;
    } finally {
      this.#reject = null;
      this.#output = [];
    }
  }
}

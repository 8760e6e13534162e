import type { Transform } from 'node:stream';

/**
 * A zlib transform that flushes after each write, as a function: bytes in, and all that it makes of them out. One call at
 * a time. zlib calls nobody back once it is destroyed, so `destroy` rejects the call that is under way.
 */
export class FlushedTransform {
  readonly #transform: Transform;
  #output: Uint8Array[] = [];
  /** Rejects the call under way; null when there is none. */
  #reject: ((reason: unknown) => void) | null = null;

  constructor(transform: Transform) {
    this.#transform = transform;
    transform.on('data', (chunk: Uint8Array) => this.#output.push(chunk));
    transform.on('error', (error) => this.#reject?.(error));
  }

  /** The output of `bytes`, which must not change until then: a decoder makes all of `bytes` of it. */
  compress(bytes: Uint8Array): Promise<readonly Uint8Array[]> {
    // What is pushed before this callback reaches the listener within the same turn.
    return this.#call((resolve) => this.#transform.write(bytes, (error) => error ?? setImmediate(resolve)));
  }

  /** The last output. */
  end(): Promise<readonly Uint8Array[]> {
    return this.#call((resolve) => this.#transform.once('end', resolve).end());
  }

  /** Gives back the memory at once, not when the garbage collector comes by. */
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

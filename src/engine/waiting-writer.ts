/** The writer of an answer while it waits for the reader: at most one promise, which all who wait share. */
export class WaitingWriter {
  #promise: Promise<void> | null = null;
  #settle: { resolve: () => void; reject: (reason: unknown) => void } | null = null;

  wait(): Promise<void> {
    this.#promise ??= new Promise<void>((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    return this.#promise;
  }

  /** Lets the writer go on. */
  resume(): void {
    this.#end()?.resolve();
  }

  /**
   * Lets the writer go on after the callback under way. Inside a callback of uWebSockets.js, the writer's next step
   * might close the connection that the callback still uses.
   */
  resumeLater(): void {
    const settle = this.#end();
    if (settle) setImmediate(settle.resolve);
  }

  /** The connection is gone. */
  fail(reason: unknown): void {
    this.#end()?.reject(reason);
  }

  #end(): { resolve: () => void; reject: (reason: unknown) => void } | null {
    const settle = this.#settle;
    this.#promise = null;
    this.#settle = null;
    return settle;
  }
}

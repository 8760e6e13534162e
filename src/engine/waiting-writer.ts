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

  resume(): void {
    this.#end()?.resolve();
  }

  /** Lets it go on after the callback under way, which still uses the connection that its next step may close. */
  resumeLater(): void {
    const settle = this.#end();
    if (settle) setImmediate(settle.resolve);
  }

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

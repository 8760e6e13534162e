/** Turns by key: work with the same key runs one after another, in the order of the calls. */
export class TurnsByKey {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` once all earlier work of this key has settled. Returns the result of `work`. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const result = before.then(work);
    const settled = result.catch(() => undefined); // only its own caller meets a failure
    this.#last.set(key, settled);
    try {
      return await result;
    } finally {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    }
  }
}

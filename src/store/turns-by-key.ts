/** Turns by key: work of the same key runs one after the other, in the order in which it was asked for. */
export class TurnsByKey {
  readonly #last = new Map<string, Promise<unknown>>();

  /** What `work` gives, run once all earlier work of this key has settled. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const result = before.then(work);
    const settled = result.catch(() => undefined); // its caller meets the failure; the next one has its own
    this.#last.set(key, settled);
    try {
      return await result;
    } finally {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    }
  }
}

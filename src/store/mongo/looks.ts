/**
 * Looks at something that may have changed. All callers share the looks: for each key at most one is under way, and at
 * most one more waits for it to end. A look rejects when it does not see what is expected.
 */
export class Looks<Key> {
  readonly #look: (key: Key) => Promise<void>;
  readonly #now: () => number;
  readonly #running = new Map<Key, Promise<void>>();
  readonly #next = new Map<Key, Promise<void>>();
  /** For each key, when the last look that found nothing wrong began. */
  readonly #seen = new Map<Key, number>();

  /** `now` is a clock in milliseconds. */
  constructor(look: (key: Key) => Promise<void>, now: () => number) {
    this.#look = look;
    this.#now = now;
  }

  /**
   * Returns the look under way, or begins one. Returns null when the last look is at most `ageMs` milliseconds old.
   */
  recent(key: Key, ageMs: number): Promise<void> | null {
    const at = this.#seen.get(key);
    if (at !== undefined && this.#now() - at <= ageMs) return null;
    return this.#running.get(key) ?? this.#begin(key);
  }

  /** A look that begins now or later, so it sees everything that happened before the call. */
  fresh(key: Key): Promise<void> {
    const running = this.#running.get(key);
    if (!running) return this.#begin(key);
    const next = this.#next.get(key) ?? this.#beginAfter(running, key);
    this.#next.set(key, next);
    return next;
  }

  #beginAfter(running: Promise<void>, key: Key): Promise<void> {
    const begin = () => {
      this.#next.delete(key);
      return this.#begin(key);
    };
    return handled(running.then(begin, begin));
  }

  #begin(key: Key): Promise<void> {
    const began = this.#now();
    const looking = this.#look(key)
      .then(() => void this.#seen.set(key, began))
      .finally(() => this.#running.delete(key));
    this.#running.set(key, looking);
    return handled(looking);
  }
}

/** The callers may have left. A failure is for those that wait, and would be unhandled when none does. */
function handled(looking: Promise<void>): Promise<void> {
  looking.catch(() => undefined);
  return looking;
}

/**
 * Looks at something that may have changed, shared by all who ask: at most one for each key is under way, and at most one
 * more waits for its end. A look rejects when what it sees is not what is expected.
 */
export class Looks<Key> {
  readonly #look: (key: Key) => Promise<void>;
  readonly #now: () => number;
  readonly #running = new Map<Key, Promise<void>>();
  readonly #next = new Map<Key, Promise<void>>();
  /** When the last look at a key that saw nothing wrong began. */
  readonly #seen = new Map<Key, number>();

  /** `now` is a clock in milliseconds. */
  constructor(look: (key: Key) => Promise<void>, now: () => number) {
    this.#look = look;
    this.#now = now;
  }

  /** A look that is under way, or begins now; null when the last one is at most `ageMs` old. */
  recent(key: Key, ageMs: number): Promise<void> | null {
    const at = this.#seen.get(key);
    if (at !== undefined && this.#now() - at <= ageMs) return null;
    return this.#running.get(key) ?? this.#begin(key);
  }

  /** A look that begins now or later: it sees all that came before the call. */
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

/** Whoever asked may have left: a failure is for those who wait, and unhandled without any. */
function handled(looking: Promise<void>): Promise<void> {
  looking.catch(() => undefined);
  return looking;
}

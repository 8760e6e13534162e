import { getOrMake } from '../../base/get-or-make.ts';

/** Runs work in the order of the calls, with a limit on how much runs at the same time. A failure reaches its own caller. */
export class Turns {
  readonly #atOnce: number;
  #running = 0;
  #waiting: (() => void)[] = [];
  /** Called when nothing runs any more. Null: `stop` was not called. */
  #onStopped: (() => void) | null = null;

  constructor(atOnce = 1) {
    this.#atOnce = atOnce;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running === this.#atOnce || this.#onStopped)
      await new Promise<void>((turn) => this.#waiting.push(turn));
    else this.#running++;
    try {
      return await work();
    } finally {
      const next = this.#onStopped ? undefined : this.#waiting.shift();
      if (next) next();
      else if (--this.#running === 0) this.#onStopped?.();
    }
  }

  /** Resolves when all work of earlier calls is done. For a concurrency of one. */
  idle(): Promise<void> {
    return this.take(() => Promise.resolve());
  }

  /** Drops the work that waits, whose promises then never settle, and resolves when nothing runs. */
  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#onStopped = resolve;
      if (this.#running === 0) resolve();
    });
  }
}

/** Runs work of the same key one after another, in the order of the calls. */
export class TurnsByKey {
  readonly #turns = new Map<string, { readonly turns: Turns; taken: number }>();

  /** Runs `work` once all earlier work of this key has settled. Returns the result of `work`. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const own = getOrMake(this.#turns, key, () => ({ turns: new Turns(), taken: 0 }));
    own.taken++;
    try {
      return await own.turns.take(work);
    } finally {
      if (--own.taken === 0) this.#turns.delete(key); // keys are many, and most are used once
    }
  }
}

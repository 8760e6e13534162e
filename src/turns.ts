import PQueue from 'p-queue';

/**
 * Turns: work runs in the order of the calls, so much at a time. A failure reaches only its own caller, and the next
 * work runs all the same.
 */
export class Turns {
  readonly #queue: PQueue;

  constructor(atATime = 1) {
    this.#queue = new PQueue({ concurrency: atATime });
  }

  /** Runs `work` when its turn comes. Returns the result of `work`. */
  take<T>(work: () => Promise<T>): Promise<T> {
    return this.#queue.add(work);
  }

  /** Resolves when everything asked for so far is done. For one at a time. */
  idle(): Promise<void> {
    return this.#queue.add(() => Promise.resolve()); // onIdle() would wait for later work, too
  }
}

/** Turns by key: work with the same key runs one after another, in the order of the calls. */
export class TurnsByKey {
  readonly #queues = new Map<string, PQueue>();

  /** Runs `work` once all earlier work of this key has settled. Returns the result of `work`. */
  take<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.#queueOf(key).add(work);
  }

  #queueOf(key: string): PQueue {
    const known = this.#queues.get(key);
    if (known) return known;
    const queue = new PQueue({ concurrency: 1 });
    queue.once('idle', () => this.#queues.delete(key)); // keys are many, and most are used once
    this.#queues.set(key, queue);
    return queue;
  }
}

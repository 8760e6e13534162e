import PQueue from 'p-queue';

/**
 * Runs work in the order of the calls, with a limit on how much runs at the same time (one by default). A failure
 * reaches only its own caller, and the next work still runs.
 */
export class Turns {
  readonly #queue: PQueue;

  constructor(concurrency = 1) {
    this.#queue = new PQueue({ concurrency });
  }

  /** Runs `work` when its turn comes. Returns the result of `work`. */
  take<T>(work: () => Promise<T>): Promise<T> {
    return this.#queue.add(work);
  }

  /** Resolves when all work of earlier calls is done. For a concurrency of one. */
  idle(): Promise<void> {
    return this.#queue.add(() => Promise.resolve()); // onIdle() would wait for later work, too
  }

  /** Drops the work that waits, whose promises then never settle, and resolves when nothing runs. */
  stop(): Promise<void> {
    this.#queue.pause();
    this.#queue.clear();
    return this.#queue.onPendingZero();
  }
}

/** Runs work of the same key one after another, in the order of the calls. */
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

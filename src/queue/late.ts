import type { JobQueue } from './queue.ts';

/**
 * A queue that is opened when the first id is added. Its name is an id that a store receives with its first export.
 * Before that there is nothing to work on, and nothing is written into a store without exports.
 */
export class LateQueue implements JobQueue {
  readonly #openQueue: () => Promise<JobQueue>;
  #opening: Promise<JobQueue> | null = null;
  #isClosed = false;

  constructor(openQueue: () => Promise<JobQueue>) {
    this.#openQueue = openQueue;
  }

  async add(id: string, delayMs?: number): Promise<void> {
    if (this.#isClosed) throw new Error('the queue is closed');
    const queue = await this.#open();
    await queue.add(id, delayMs);
  }

  /** When the store is unavailable, the next id tries again. */
  #open(): Promise<JobQueue> {
    this.#opening ??= this.#openQueue().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const queue = await this.#opening?.catch(() => null); // `add` reported the error
    await queue?.close();
  }
}

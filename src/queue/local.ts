import { Turns } from '../turns.ts';
import type { JobQueue, QueueOptions, Work } from './queue.ts';

/** A queue in the memory of this process. */
export class LocalQueue implements JobQueue {
  readonly #turns: Turns;
  readonly #work: Work;
  /** Ids that wait or are being worked on, with the timers of those that are not due. */
  readonly #known = new Map<string, NodeJS.Timeout | undefined>();
  #isClosed = false;

  constructor({ concurrency, work }: QueueOptions) {
    this.#turns = new Turns(concurrency);
    this.#work = work;
  }

  add(id: string, delayMs = 0): Promise<void> {
    if (!this.#known.has(id)) this.#addAfter(id, delayMs);
    return Promise.resolve();
  }

  async close(): Promise<void> {
    for (const timer of this.#known.values()) clearTimeout(timer);
    this.#isClosed = true;
    await this.#turns.stop();
  }

  #addAfter(id: string, delayMs: number): void {
    const timer = delayMs > 0 ? setTimeout(() => this.#enqueue(id), delayMs) : undefined;
    this.#known.set(id, timer);
    if (!timer) this.#enqueue(id);
  }

  #enqueue(id: string): void {
    void this.#turns.take(async () => {
      const again = await this.#work(id);
      this.#known.delete(id);
      if (again !== null && !this.#isClosed) this.#addAfter(id, again);
    });
  }
}

import { Turns } from '../store/turns/work-turns.ts';
import type { JobQueue, QueueOptions } from './queue.ts';

/** A queue in the memory of this process. */
export function createLocalQueue({ concurrency, work }: QueueOptions): JobQueue {
  const turns = new Turns(concurrency);
  /** Ids that wait or are being worked on, with the timers of those that are not due. */
  const known = new Map<string, NodeJS.Timeout | undefined>();
  let isClosed = false;

  const enqueue = (id: string): void => {
    void turns.take(async () => {
      const again = await work(id);
      known.delete(id);
      if (again !== null && !isClosed) addAfter(id, again);
    });
  };

  const addAfter = (id: string, delayMs: number): void => {
    known.set(id, delayMs > 0 ? setTimeout(() => enqueue(id), delayMs) : undefined);
    if (delayMs <= 0) enqueue(id);
  };

  return {
    add(id, delayMs = 0) {
      if (!known.has(id)) addAfter(id, delayMs);
      return Promise.resolve();
    },
    async close() {
      for (const timer of known.values()) clearTimeout(timer);
      isClosed = true;
      await turns.stop();
    },
  };
}

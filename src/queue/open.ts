import { LocalQueue } from './local.ts';
import type { Log } from '../log.ts';
import type { JobQueue, QueueOptions } from './queue.ts';

export interface QueueSettings {
  readonly REDIS_URL?: string;
  readonly EXPORT_CONCURRENCY: number;
}

/**
 * Opens queues as the settings say: on Redis when REDIS_URL is set (which loads that adapter), else in this process.
 * Processes on one store share one queue, because an id means nothing to another store. `storeId` tells stores apart,
 * whatever their URLs are.
 */
export async function queueOpener(
  settings: QueueSettings,
  log: Log,
  storeId: () => Promise<string>,
): Promise<(options: Pick<QueueOptions, 'work'>) => JobQueue> {
  const { REDIS_URL: url, EXPORT_CONCURRENCY: concurrency } = settings;
  if (url === undefined) return ({ work }) => new LocalQueue({ work, concurrency });
  const { BullQueue } = await import('./bullmq.ts');
  return ({ work }) =>
    new LateQueue(
      async () => new BullQueue({ work, concurrency, url, name: `exports-${await storeId()}`, log }),
    );
}

/**
 * A queue that is opened when the first id is added. Its name is an id that a store receives with its first export.
 * Before that there is nothing to work on, and nothing is written into a store without exports.
 */
class LateQueue implements JobQueue {
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

import { createLocalQueue } from './local.ts';
import type { Log } from '../base/log.ts';
import type { JobQueue, QueueOptions } from './queue.ts';

export interface QueueSettings {
  readonly REDIS_URL?: string;
  readonly EXPORT_CONCURRENCY: number;
}

/**
 * Opens queues on Redis when REDIS_URL is set (which loads that adapter), else in this process. Processes on one store
 * share one, because an id means nothing to another store: `storeId` tells stores apart, whatever their URLs are.
 */
export async function queueOpener(
  settings: QueueSettings,
  log: Log,
  storeId: () => Promise<string>,
): Promise<(options: Pick<QueueOptions, 'work'>) => JobQueue> {
  const { REDIS_URL: url, EXPORT_CONCURRENCY: concurrency } = settings;
  if (url === undefined) return ({ work }) => createLocalQueue({ work, concurrency });
  const { BullQueue } = await import('./bullmq.ts');
  return ({ work }) =>
    lateQueue(async () => new BullQueue({ work, concurrency, url, name: `exports-${await storeId()}`, log }));
}

/** A queue that opens with its first id. Its name is that of the store's exports, which are made with the first one. */
function lateQueue(openQueue: () => Promise<JobQueue>): JobQueue {
  let opening: Promise<JobQueue> | null = null;
  let isClosed = false;
  return {
    add: async (id, delayMs) => {
      if (isClosed) throw new Error('the queue is closed');
      opening ??= openQueue().catch((error: unknown) => {
        opening = null; // when the store is unavailable, the next id tries again
        throw error;
      });
      await (await opening).add(id, delayMs);
    },
    close: async () => {
      isClosed = true;
      const queue = await opening?.catch(() => null); // `add` reported the error
      await queue?.close();
    },
  };
}

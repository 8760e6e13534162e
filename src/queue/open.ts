import { LateQueue } from './late.ts';
import { LocalQueue } from './local.ts';
import type { Log } from '../log.ts';
import type { JobQueue, QueueOptions } from './queue.ts';

interface Settings {
  readonly REDIS_URL?: string;
  readonly EXPORT_CONCURRENCY: number;
}

/**
 * Opens queues as the settings say: on Redis when REDIS_URL is set (which loads that adapter), else in this process.
 * Processes on one store share one queue, because an id means nothing to another store. `storeId` tells stores apart,
 * whatever their URLs are.
 */
export async function queueOpener(
  settings: Settings,
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

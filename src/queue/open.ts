import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { LocalQueue } from './local.ts';
import type { BullQueueOptions } from './bullmq.ts';
import type { JobQueue, QueueOptions } from './queue.ts';

interface Settings {
  readonly REDIS_URL?: string;
  readonly MONGODB_URI?: string;
  readonly DATA_DIR: string;
  readonly EXPORT_CONCURRENCY: number;
}

/** Opens queues as the settings say: on Redis when there is a URL, which loads its adapter, else in this process. */
export async function queueOpener(
  settings: Settings,
  log: BullQueueOptions['log'],
): Promise<(options: Pick<QueueOptions, 'work'>) => JobQueue> {
  const { REDIS_URL: url, EXPORT_CONCURRENCY: concurrency } = settings;
  if (url === undefined) return ({ work }) => new LocalQueue({ work, concurrency });
  const { BullQueue } = await import('./bullmq.ts');
  return ({ work }) => new BullQueue({ work, concurrency, url, name: queueName(settings), log });
}

/** Processes on one store have one queue: an id means nothing to another store. */
function queueName({ MONGODB_URI: uri, DATA_DIR }: Settings): string {
  if (uri === undefined) return `exports-${digest(`${hostname()}:${resolve(DATA_DIR)}`)}`;
  const [, database] = /^mongodb(?:\+srv)?:\/\/[^/?]*\/([^?]+)/.exec(uri) ?? [];
  return `exports-${digest(database ?? '')}`;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

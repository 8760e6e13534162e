import { Redis, type RedisOptions } from 'ioredis';

export type { Redis };

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

type Chosen =
  | 'autoResendUnfulfilledCommands'
  | 'connectTimeout'
  | 'enableOfflineQueue'
  | 'maxRetriesPerRequest'
  | 'socketTimeout';

export interface Connecting extends Pick<RedisOptions, Chosen> {
  /** Hears of every loss; ioredis prints what nobody listens to. */
  readonly onError: (error: Error) => void;
  /** Whether a lost connection is made anew; without it always. */
  readonly isWanted?: () => boolean;
}

/** A connection to `url` (`redis://` or `rediss://`, with password and database if wanted), made anew until it is closed. */
export function connectRedis(url: string, { onError, isWanted = () => true, ...options }: Connecting): Redis {
  return new Redis(url, {
    ...options,
    connectionName: 'sluice',
    retryStrategy: (attempt) => (isWanted() ? Math.min(attempt * FIRST_PAUSE_MS, LONGEST_PAUSE_MS) : null),
  }).on('error', onError);
}

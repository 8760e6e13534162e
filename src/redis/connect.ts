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
  /** Called on every loss of the connection. Without a listener, ioredis prints the error. */
  readonly onError: (error: Error) => void;
  /** Whether to reconnect after a loss. Default: always. */
  readonly isWanted?: () => boolean;
}

/**
 * Connects to `url` (`redis://` or `rediss://`, optionally with password and database). Reconnects until it is closed.
 */
export function connectRedis(url: string, { onError, isWanted = () => true, ...options }: Connecting): Redis {
  return new Redis(url, {
    ...options,
    connectionName: 'sluice',
    retryStrategy: (attempt) => (isWanted() ? Math.min(attempt * FIRST_PAUSE_MS, LONGEST_PAUSE_MS) : null),
  }).on('error', onError);
}

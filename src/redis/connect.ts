import { Redis, type Command, type RedisOptions } from 'ioredis';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** The time that the other side has to close a connection that we closed. Then it is dropped. Milliseconds. */
const FAREWELL_MS = 200;

type OptionName =
  | 'autoResendUnfulfilledCommands'
  | 'connectTimeout'
  | 'enableOfflineQueue'
  | 'maxRetriesPerRequest'
  | 'socketTimeout';

interface ConnectionOptions extends Pick<RedisOptions, OptionName> {
  /** Called on every loss of the connection. Without a listener, ioredis prints the error. */
  readonly onError: (error: Error) => void;
  /** Whether to reconnect after a loss. Default: always. */
  readonly isWanted?: () => boolean;
}

/** Closes its duplicates, which libraries make, with itself: one that waits to connect keeps the process alive. */
export class RedisConnection extends Redis {
  readonly #duplicates: Redis[] = [];

  override duplicate(override?: Partial<RedisOptions>): Redis {
    const duplicate = super.duplicate(override);
    this.#duplicates.push(duplicate);
    return duplicate;
  }

  /** Closes this connection and all duplicates of it, also while Redis is away. Nothing of them outlives FAREWELL_MS. */
  close(): void {
    for (const connection of [this, ...this.#duplicates]) {
      connection.disconnect();
      rejectStashed(connection);
    }
  }
}

/** Rejects commands kept for a next connection: without one, their callers wait for ever (redis/ioredis#2197). */
function rejectStashed(connection: Redis): void {
  const { prevCommandQueue: stashed } = connection as unknown as {
    readonly prevCommandQueue?: { shift(): { readonly command: Command } | undefined } | null;
  };
  for (let item = stashed?.shift(); item; item = stashed?.shift())
    item.command.reject(new Error('The connection to Redis is closed.'));
}

/** Connects to `url` (`redis://` or `rediss://`, optionally with password and database). Reconnects until it is closed. */
export function connectRedis(
  url: string,
  { onError, isWanted = () => true, ...options }: ConnectionOptions,
): RedisConnection {
  const connection = new RedisConnection(url, {
    ...options,
    connectionName: 'sluice',
    // ioredis waits two seconds by default, also for a socket that is closed already.
    disconnectTimeout: FAREWELL_MS,
    retryStrategy: (attempt) => (isWanted() ? Math.min(attempt * FIRST_PAUSE_MS, LONGEST_PAUSE_MS) : null),
  });
  connection.on('error', onError);
  return connection;
}

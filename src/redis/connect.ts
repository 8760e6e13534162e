import { Cluster, Redis, type Command, type RedisOptions } from 'ioredis';
import { readRedisUrl, type RedisPlace } from './url.ts';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** The time that the other side has to close a connection that we closed. Then it is dropped. Milliseconds. */
const FAREWELL_MS = 200;
/** How long a Sentinel, or a node that is asked for the slots of its Cluster, may take to answer. Milliseconds. */
const TOPOLOGY_MS = 1_000;
/** How often a Cluster is asked who has which slots: a node that hangs says nothing when it is replaced. Milliseconds. */
const SLOTS_EVERY_MS = 2_000;
/** How long a command waits before it asks again for a slot whose node is gone. Milliseconds. */
const FAILOVER_PAUSE_MS = 100;
/** Redirections of a command that may not wait: one for a slot that has moved, and one for a move under way. */
const FEW_REDIRECTIONS = 3;

type OptionName =
  'autoResendUnfulfilledCommands' | 'connectTimeout' | 'maxRetriesPerRequest' | 'socketTimeout';

interface ConnectionOptions extends Pick<RedisOptions, OptionName> {
  /** Called on every loss of the connection. Without a listener, ioredis prints the error. */
  readonly onError: (error: Error) => void;
  /** Whether to reconnect after a loss. Default: always. */
  readonly isWanted?: () => boolean;
  /** Whether commands wait while Redis is away, for as long as it takes. Without it, they fail at once. */
  readonly waits: boolean;
}

/** A connection to Redis, whatever stands behind it. */
export type RedisConnection = ServerConnection | ClusterConnection;

/** Closes its duplicates, which libraries make, with itself: one that waits to connect keeps the process alive. */
class ServerConnection extends Redis {
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

/** As ServerConnection, to all nodes of a Cluster. */
class ClusterConnection extends Cluster {
  readonly #duplicates: Cluster[] = [];

  override duplicate(...given: Parameters<Cluster['duplicate']>): Cluster {
    const duplicate = super.duplicate(...given);
    this.#duplicates.push(duplicate);
    return duplicate;
  }

  close(): void {
    for (const connection of [this, ...this.#duplicates]) {
      connection.disconnect();
      rejectQueued(connection);
    }
  }
}

/** Connections to each server that takes writes. */
export function mastersOf(connection: RedisConnection): readonly Redis[] {
  return connection instanceof Cluster ? connection.nodes('master') : [connection];
}

const closed = () => new Error('The connection to Redis is closed.');

/** Commands that wait in a connection, which ioredis does not show. */
interface Waiting {
  shift(): { readonly command: Command } | undefined;
}

function rejectAll(waiting: Waiting | null | undefined): void {
  for (let item = waiting?.shift(); item; item = waiting?.shift()) item.command.reject(closed());
}

/** Rejects commands kept for a next connection: without one, their callers wait for ever (redis/ioredis#2197). */
function rejectStashed(connection: Redis): void {
  rejectAll((connection as unknown as { readonly prevCommandQueue?: Waiting | null }).prevCommandQueue);
}

/** Rejects commands that wait for a Cluster: one that is closed between two attempts to connect keeps them for ever. */
function rejectQueued(connection: Cluster): void {
  rejectAll((connection as unknown as { readonly offlineQueue?: Waiting }).offlineQueue);
}

/** Connects to what a REDIS_URL names (see url.ts). Reconnects until it is closed. */
export function connectRedis(url: string, options: ConnectionOptions): RedisConnection {
  const place = readRedisUrl(url);
  if (place === null) throw new Error('REDIS_URL has none of its forms');
  const { onError, ...rest } = options;
  const connection = place.kind === 'cluster' ? connectCluster(place, rest) : connectServer(place, rest);
  connection.on('error', (error: Error) => onError(withCause(error)));
  return connection;
}

/** A Cluster says that no node answered, and keeps why in a member of its own. The message alone has no password. */
function withCause(error: Error): Error {
  const { lastNodeError: cause } = error as { readonly lastNodeError?: Error };
  return cause ? new Error(`${error.message} ${cause.message}`, { cause }) : error;
}

function connectServer(
  place: Exclude<RedisPlace, { kind: 'cluster' }>,
  { isWanted = () => true, waits, ...options }: Omit<ConnectionOptions, 'onError'>,
): ServerConnection {
  const pause = pauseWhile(isWanted);
  const common = {
    ...options,
    connectionName: 'sluice',
    // ioredis waits two seconds by default, also for a socket that is closed already.
    disconnectTimeout: FAREWELL_MS,
    enableOfflineQueue: waits,
    retryStrategy: pause,
  };
  if (place.kind === 'server') return new ServerConnection(place.url, common);
  const { username, password } = place.sentinelLogin;
  return new ServerConnection({
    ...common,
    ...place.login,
    sentinels: place.nodes.map(({ host, port }) => ({ host, port })),
    name: place.master,
    db: place.database,
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
    sentinelCommandTimeout: TOPOLOGY_MS,
    sentinelRetryStrategy: pause,
    // A master that hangs closes no connection: the Sentinels say that another one took over.
    failoverDetector: true,
    ...(place.isTls && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
  });
}

function connectCluster(
  place: Extract<RedisPlace, { kind: 'cluster' }>,
  { isWanted = () => true, waits, ...options }: Omit<ConnectionOptions, 'onError'>,
): ClusterConnection {
  const pause = waits ? FAILOVER_PAUSE_MS : 0; // 0: a command fails at once
  return new ClusterConnection(
    place.nodes.map(({ host, port }) => ({ host, port })),
    {
      clusterRetryStrategy: pauseWhile(isWanted),
      enableOfflineQueue: waits,
      maxRedirections: waits ? Infinity : FEW_REDIRECTIONS,
      retryDelayOnFailover: pause,
      retryDelayOnClusterDown: pause,
      slotsRefreshTimeout: TOPOLOGY_MS,
      slotsRefreshInterval: SLOTS_EVERY_MS,
      // Keeps names: a certificate is of a name, not of the address behind it.
      dnsLookup: (address, found) => found(null, address),
      redisOptions: {
        ...options,
        ...place.login,
        connectionName: 'sluice',
        disconnectTimeout: FAREWELL_MS,
        ...(place.isTls && { tls: {} }),
      },
    },
  );
}

/** Pauses between attempts to connect, which grow; null once no connection is wanted. */
function pauseWhile(isWanted: () => boolean): (attempt: number) => number | null {
  return (attempt) => (isWanted() ? Math.min(attempt * FIRST_PAUSE_MS, LONGEST_PAUSE_MS) : null);
}

import type { Log } from '../log.ts';
import { Admissions } from './admission.ts';
import { createClientReader, type ClientReaderOptions } from './client.ts';
import { Keyring, type Key } from './keys.ts';
import type { Limiter } from './limiter.ts';
import { createMemoryLimiter } from './memory.ts';
import { OverloadGuard, type OverloadProbe } from './overload.ts';
import type { Policy } from './policy.ts';
import { StreamSlots } from './stream-slots.ts';

/** The settings of access. See config.ts for their units. */
export interface AccessSettings {
  readonly REDIS_URL?: string;
  /** null: RATE_LIMIT is off. */
  readonly rateLimit: Policy | null;
  readonly streamLimit: number;
  readonly MAX_STREAMS: number;
  readonly MAX_LOOP_DELAY: number;
  readonly MAX_WAIT: number;
  readonly maxMemoryBytes: number;
  readonly trustsProxy: ClientReaderOptions['trusts'];
  /** null: no request needs a key. */
  readonly apiKeys: readonly Key[] | null;
}

/** What decides which requests are let in: keys, rate limits, stream slots, and the guard against overload. */
export interface Access {
  readonly admissions: Admissions;
  readonly streams: StreamSlots;
  /** The keys that are valid now. null: no request needs a key. */
  readonly keyring: Keyring | null;
  /** To be started once the server listens. */
  readonly guard: OverloadGuard;
  close(): Promise<void>;
}

/** Opens what the settings ask for. Rejects when the limiter's database cannot be opened. */
export async function openAccess(config: AccessSettings, log: Log, probe?: OverloadProbe): Promise<Access> {
  const streams = new StreamSlots({ perClient: config.streamLimit, total: config.MAX_STREAMS });
  const guard = new OverloadGuard({
    maxLoopDelayMs: config.MAX_LOOP_DELAY,
    maxWaitMs: config.MAX_WAIT,
    maxMemoryBytes: config.maxMemoryBytes,
    ...(probe && { probe }),
  });
  const limiter = await openLimiter(config, log);
  const keyring = config.apiKeys && new Keyring(config.apiKeys);
  const admissions = new Admissions({
    readClient: createClientReader({
      trusts: config.trustsProxy,
      onWarning: (message) => log.warn({}, message),
    }),
    authenticate: keyring && ((authorization) => keyring.authenticate(authorization)),
    ...(keyring && { allows: (begun) => keyring.allows(begun) }),
    rate: limiter && { policy: config.rateLimit, limiter },
    slots: streams,
    overload: () => guard.refusal(),
    backlog: guard.backlog,
  });
  return {
    admissions,
    streams,
    keyring,
    guard,
    async close() {
      await limiter?.close();
      guard.close();
    },
  };
}

/** The limit of a limiter that only counts the requests of keys with their own. */
const NEVER_USED: Policy = { limit: 1_000_000_000, windowSeconds: 60 };

/**
 * Opens the limiter that the settings name. With a Redis URL it loads the Redis adapter; otherwise the limiter is in
 * this process. Resolves with null when RATE_LIMIT is off and there are no keys, which may have limits of their own.
 */
async function openLimiter(
  { REDIS_URL: url, rateLimit, apiKeys }: AccessSettings,
  log: Log,
): Promise<Limiter | null> {
  if (rateLimit === null && apiKeys === null) return null;
  const policy = rateLimit ?? NEVER_USED;
  if (url === undefined) return createMemoryLimiter(policy);
  const { connectRedisLimiter } = await import('./redis.ts'); // most servers do without this client
  return connectRedisLimiter({ url, policy, log });
}

import { once } from 'node:events';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { getOrMake } from '../get-or-make.ts';
import { connectRedis } from '../redis/connect.ts';
import type { Limiter } from './limiter.ts';
import { createMemoryLimiter } from './limiter-memory.ts';
import type { Policy, Taken } from './policy.ts';
import type { Log } from '../log.ts';
import { reasonOf } from '../error-reason.ts';

/** The longest time a request waits for Redis. After it, the connection is made anew. Milliseconds. */
const SILENCE_MS = 1000;
/** How long Redis must have counted again before the log says so. Milliseconds. */
const STEADY_MS = 1000;

interface RedisLimiterOptions {
  /** `redis://` or `rediss://`, with password and database if needed. */
  readonly url: string;
  readonly log: Log;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/**
 * Connects to limits that all processes on one Redis share. A request that Redis does not count, because it is away,
 * read-only or full, is counted in this process. The log says so once, and once when Redis counts again. Resolves when
 * it is known whether Redis answers; it does not reject when Redis does not.
 *
 * The library's `insuranceLimiter` would do the same, but it drops the error, which has the reason for the log.
 */
export async function connectRedisLimiter({
  url,
  log,
  now = () => performance.now(),
}: RedisLimiterOptions): Promise<Limiter> {
  const local = createMemoryLimiter({ now });
  let failedAt: number | null = null;
  let isClosed = false;
  const failed = (error: unknown) => {
    const before = failedAt;
    failedAt = now();
    if (before !== null || isClosed) return;
    // Log the message alone: the error of a failed login has the password among its fields.
    const reason = reasonOf(error);
    log.warn({ reason }, 'Redis does not respond: RATE_LIMIT applies per process until it does');
  };
  const counted = () => {
    if (failedAt === null || now() < failedAt + STEADY_MS) return;
    failedAt = null;
    log.info({}, 'Redis responds again: RATE_LIMIT applies to all processes together');
  };
  const redis = connectRedis(url, {
    // A request is never queued for later: it is answered now, without Redis.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: SILENCE_MS,
    socketTimeout: SILENCE_MS,
    onError: failed,
  });
  const limiters = new Map<string, RateLimiterRedis>();
  /** Another policy has another counter: the use of one says nothing about the other. */
  const limiterOf = ({ limit, windowSeconds }: Policy): RateLimiterRedis => {
    const keyPrefix = `sluice:rate:${limit}/${windowSeconds}`;
    const options = { storeClient: redis, keyPrefix, points: limit, duration: windowSeconds };
    const make = () => new RateLimiterRedis({ ...options, rejectIfRedisNotReady: true });
    return getOrMake(limiters, keyPrefix, make);
  };
  // `once` rejects with the error of an `error` event, which is logged. A peer that hangs up causes no such event.
  await Promise.race([once(redis, 'ready'), once(redis, 'close')]).catch(() => undefined);
  return {
    async take(client, policy) {
      // The library also rejects with a result, when the client is above the limit.
      const answer = await limiterOf(policy)
        .consume(client)
        .catch((rejected: unknown) => rejected);
      if (!(answer instanceof RateLimiterRes)) {
        failed(answer);
        return local.take(client, policy);
      }
      counted();
      return takenOf(answer, policy);
    },
    close: () => {
      isClosed = true;
      redis.close();
      return Promise.resolve();
    },
  };
}

function takenOf({ consumedPoints, msBeforeNext }: RateLimiterRes, { limit }: Policy): Taken {
  return {
    allowed: consumedPoints <= limit,
    remaining: Math.max(limit - consumedPoints, 0),
    resetSeconds: Math.max(Math.ceil(msBeforeNext / 1000), 1),
  };
}

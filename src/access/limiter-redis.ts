import { once } from 'node:events';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { getOrMake } from '../base/get-or-make.ts';
import { connectRedis, type RedisConnection } from '../redis/connect.ts';
import type { Limiter } from './limiter.ts';
import { createMemoryLimiter } from './limiter-memory.ts';
import type { Policy, Allowance } from './policy.ts';
import type { Log } from '../base/log.ts';
import { reasonOf } from '../base/error-reason.ts';

/** The longest time a request waits for Redis. After it, the connection is made anew. Milliseconds. */
const SILENCE_MS = 1000;
/** How long Redis must have counted again before the log says so. Milliseconds. */
const STEADY_MS = 1000;

interface RedisLimiterOptions {
  /** A REDIS_URL. */
  readonly url: string;
  readonly log: Log;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/**
 * Limits that all processes on one Redis share. A request that Redis does not count, because it is away, read-only or
 * full, is counted in this process. The log says so once, and once when Redis counts again.
 *
 * The library's `insuranceLimiter` would do the same, but it drops the error, which has the reason for the log.
 */
class RedisLimiter implements Limiter {
  readonly #log: Log;
  readonly #now: () => number;
  readonly #local: Limiter;
  readonly #redis: RedisConnection;
  readonly #limiters = new Map<string, RateLimiterRedis>();
  #failedAt: number | null = null;
  #isClosed = false;

  constructor({ url, log, now = () => performance.now() }: RedisLimiterOptions) {
    this.#log = log;
    this.#now = now;
    this.#local = createMemoryLimiter({ now });
    this.#redis = connectRedis(url, {
      // A request is never queued for later: it is answered now, without Redis.
      waits: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      connectTimeout: SILENCE_MS,
      socketTimeout: SILENCE_MS,
      onError: (error) => this.#failed(error),
    });
  }

  /** Resolves when it is known whether Redis answers. */
  async firstAnswer(): Promise<void> {
    // `once` rejects with the error of an `error` event, which is logged. A peer that hangs up causes no such event.
    await Promise.race([once(this.#redis, 'ready'), once(this.#redis, 'close')]).catch(() => undefined);
  }

  async take(client: string, policy: Policy): Promise<Allowance> {
    // The library also rejects with a result, when the client is above the limit.
    const answer = await this.#limiterOf(policy)
      .consume(client)
      .catch((rejected: unknown) => rejected);
    if (!(answer instanceof RateLimiterRes)) {
      this.#failed(answer);
      return this.#local.take(client, policy);
    }
    this.#counted();
    return takenOf(answer, policy);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#redis.close();
    return Promise.resolve();
  }

  /**
   * Another policy has another counter: the use of one says nothing about the other. Each counter is one key, so a Cluster
   * spreads them over its nodes.
   */
  #limiterOf({ limit, windowSeconds }: Policy): RateLimiterRedis {
    const keyPrefix = `sluice:rate:${limit}/${windowSeconds}`;
    const options = { storeClient: this.#redis, keyPrefix, points: limit, duration: windowSeconds };
    const make = () => new RateLimiterRedis({ ...options, rejectIfRedisNotReady: true });
    return getOrMake(this.#limiters, keyPrefix, make);
  }

  #failed(error: unknown): void {
    const before = this.#failedAt;
    this.#failedAt = this.#now();
    if (before !== null || this.#isClosed) return;
    // Log the message alone: the error of a failed login has the password among its fields.
    const reason = reasonOf(error);
    this.#log.warn({ reason }, 'Redis does not respond: RATE_LIMIT applies per process until it does');
  }

  #counted(): void {
    if (this.#failedAt === null || this.#now() < this.#failedAt + STEADY_MS) return;
    this.#failedAt = null;
    this.#log.info({}, 'Redis responds again: RATE_LIMIT applies to all processes together');
  }
}

/** Resolves when it is known whether Redis answers; it does not reject when Redis does not. */
export async function connectRedisLimiter(options: RedisLimiterOptions): Promise<Limiter> {
  const limiter = new RedisLimiter(options);
  await limiter.firstAnswer();
  return limiter;
}

function takenOf({ consumedPoints, msBeforeNext }: RateLimiterRes, { limit }: Policy): Allowance {
  return {
    allowed: consumedPoints <= limit,
    remaining: Math.max(limit - consumedPoints, 0),
    resetSeconds: Math.max(Math.ceil(msBeforeNext / 1000), 1),
  };
}

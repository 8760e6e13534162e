import { once } from 'node:events';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { connectRedis, type RedisConnection } from '../redis/connect.ts';
import type { Limiter, Taken } from './limiter.ts';
import { createMemoryLimiter, type MemoryLimiter } from './limiter-memory.ts';
import type { Policy } from './policy.ts';
import type { Log } from '../log.ts';
import { reasonOf } from '../error-reason.ts';

/**
 * The longest time a request waits for Redis. After it, this process counts, and the connection is made anew.
 * Milliseconds.
 */
const SILENCE_MS = 1000;
/** The interval at which Redis is retried while it is unavailable. Milliseconds. */
const ASK_AGAIN_MS = 1000;
/**
 * The client counted when Redis is asked whether it counts. The check is a write, because a replica or a full Redis
 * also answers PING.
 */
const NOBODY = '-';

export interface RedisLimiterOptions {
  /** `redis://` or `rediss://`, with password and database if needed. */
  readonly url: string;
  readonly policy: Policy;
  readonly log: Log;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/** What counts: `shared`: Redis. `alone`: this process, until Redis is asked again. `closed`: nothing any more. */
type State = { readonly kind: 'shared' | 'closed' } | { readonly kind: 'alone'; readonly askAgainAt: number };

/**
 * Connects to limits that all processes on one Redis share. When Redis does not answer, is read-only or is full, the
 * limits continue in this process from zero. That is logged once, and so is the return of Redis. Resolves when it is
 * known whether Redis answers; it does not reject when Redis does not.
 */
export async function connectRedisLimiter(options: RedisLimiterOptions): Promise<Limiter> {
  const limiter = new RedisLimiter(options);
  await limiter.connected();
  return limiter;
}

class RedisLimiter implements Limiter {
  readonly #redis: RedisConnection;
  /** By their key prefix. */
  readonly #shared = new Map<string, RateLimiterRedis>();
  readonly #local: MemoryLimiter;
  readonly #policy: Policy;
  readonly #log: Log;
  readonly #now: () => number;
  #state: State = { kind: 'shared' };

  constructor({ url, policy, log, now = () => performance.now() }: RedisLimiterOptions) {
    this.#policy = policy;
    this.#log = log;
    this.#now = now;
    this.#local = createMemoryLimiter(policy, { now });
    this.#redis = connectRedis(url, {
      // A request is never queued for later: it is answered now, without Redis.
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      connectTimeout: SILENCE_MS,
      socketTimeout: SILENCE_MS,
      onError: (error) => this.#goAlone(error),
    });
    this.#redis.on('ready', () => this.#askAgain());
  }

  /** Another policy has another counter: the use of one says nothing about the other. */
  #sharedBy({ limit, windowSeconds }: Policy): RateLimiterRedis {
    const keyPrefix = `sluice:rate:${limit}/${windowSeconds}`;
    const options = { storeClient: this.#redis, keyPrefix, points: limit, duration: windowSeconds };
    const known = this.#shared.get(keyPrefix) ?? new RateLimiterRedis(options);
    this.#shared.set(keyPrefix, known);
    return known;
  }

  async connected(): Promise<void> {
    // `once` rejects with the error of an `error` event. A peer that closes the connection causes no such event.
    await Promise.race([once(this.#redis, 'ready'), once(this.#redis, 'close')]).then(
      () => {
        if (this.#redis.status !== 'ready') this.#goAlone('the connection was closed');
      },
      (error: unknown) => this.#goAlone(error),
    );
  }

  take(client: string, policy = this.#policy): Taken | Promise<Taken> {
    if (this.#state.kind === 'shared') return this.#takeShared(client, policy);
    if (this.#state.kind === 'alone' && this.#now() >= this.#state.askAgainAt) this.#askAgain();
    return this.#local.take(client, policy);
  }

  close(): Promise<void> {
    this.#state = { kind: 'closed' };
    this.#redis.close();
    return Promise.resolve();
  }

  async #takeShared(client: string, policy: Policy): Promise<Taken> {
    const answer = await this.#consume(client, policy);
    if (answer instanceof RateLimiterRes) {
      const { consumedPoints, msBeforeNext } = answer;
      return {
        allowed: consumedPoints <= policy.limit,
        remaining: Math.max(policy.limit - consumedPoints, 0),
        resetSeconds: Math.max(Math.ceil(msBeforeNext / 1000), 1),
      };
    }
    this.#goAlone(answer.failure);
    return this.#local.take(client, policy);
  }

  /**
   * The library rejects with a result when the client is above the limit, and with an error when there is no result.
   */
  async #consume(
    client: string,
    policy = this.#policy,
  ): Promise<RateLimiterRes | { readonly failure: unknown }> {
    try {
      return await this.#sharedBy(policy).consume(client);
    } catch (rejected) {
      return rejected instanceof RateLimiterRes ? rejected : { failure: rejected };
    }
  }

  #goAlone(error: unknown): void {
    if (this.#state.kind !== 'shared') return;
    this.#state = { kind: 'alone', askAgainAt: this.#now() + ASK_AGAIN_MS };
    // Log the message alone: the error of a failed login has the password among its fields.
    const reason = reasonOf(error);
    this.#log.warn({ reason }, 'Redis does not respond: RATE_LIMIT applies per process until it does');
  }

  #askAgain(): void {
    if (this.#state.kind !== 'alone') return;
    this.#state = { kind: 'alone', askAgainAt: this.#now() + ASK_AGAIN_MS };
    void this.#consume(NOBODY).then((answer) => {
      if (this.#state.kind !== 'alone' || !(answer instanceof RateLimiterRes)) return;
      this.#state = { kind: 'shared' };
      this.#log.info({}, 'Redis responds again: RATE_LIMIT applies to all processes together');
    });
  }
}

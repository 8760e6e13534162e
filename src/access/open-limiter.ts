import type { Limiter } from './limiter.ts';
import { createMemoryLimiter } from './memory.ts';
import type { Policy } from './policy.ts';

interface LimiterSettings {
  readonly REDIS_URL?: string;
  /** null: RATE_LIMIT is off. */
  readonly rateLimit: Policy | null;
}

interface Log {
  warn(details: object, message: string): void;
  info(details: object, message: string): void;
}

/**
 * Opens the limiter that the settings name. With a Redis URL it loads the Redis adapter; otherwise the limiter is in
 * this process. Resolves with null when RATE_LIMIT is off.
 */
export async function openLimiter(
  { REDIS_URL: url, rateLimit: policy }: LimiterSettings,
  log: Log,
): Promise<Limiter | null> {
  if (policy === null) return null;
  if (url === undefined) return createMemoryLimiter(policy);
  const { connectRedisLimiter } = await import('./redis.ts'); // most servers do without this client
  return connectRedisLimiter({ url, policy, log });
}

import { KEY_PREFIX, type Limiter, type Taken } from './limiter.ts';
import type { Policy } from './policy.ts';
import { Windows } from './windows.ts';

/** Addresses counted one by one: 30 MB when so many come within one window. */
const ADDRESSES = 2 ** 20;
/** More keys than a file will have. */
const KEYS = 2 ** 16;

export interface MemoryLimiterOptions {
  /** Milliseconds that never go back. */
  readonly now?: () => number;
  readonly addresses?: number;
}

/** A limiter that answers at once. */
export interface MemoryLimiter extends Limiter {
  take(client: string): Taken;
}

/**
 * Limits of one process. rate-limiter-flexible's own memory store was measured and left: a timer a key makes 430 bytes a
 * client and stops of 0.1 s, two promises a call 4 times the time (bench/micro/limiter.ts).
 */
export function createMemoryLimiter(
  { limit, windowSeconds }: Policy,
  { now = () => performance.now(), addresses = ADDRESSES }: MemoryLimiterOptions = {},
): MemoryLimiter {
  const byAddress = new Windows(addresses, windowSeconds * 1000);
  const byKey = new Windows(KEYS, windowSeconds * 1000);
  return {
    take: (client) => {
      const windows = client.startsWith(KEY_PREFIX) ? byKey : byAddress;
      // Whole milliseconds: a sum of fractions less one of them may be a hair more than the window.
      const time = Math.floor(now());
      const slot = windows.count(client, time);
      const count = windows.counts[slot] ?? 0;
      return {
        allowed: count <= limit,
        remaining: Math.max(limit - count, 0),
        resetSeconds: Math.ceil(((windows.ends[slot] ?? 0) - time) / 1000),
      };
    },
    close: () => Promise.resolve(),
  };
}

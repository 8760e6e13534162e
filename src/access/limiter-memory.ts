import { getOrMake } from '../get-or-make.ts';
import { KEY_PREFIX, TOKEN_PREFIX, type Limiter } from './limiter.ts';
import type { Policy, Taken } from './policy.ts';
import { Windows } from './windows.ts';

/** The number of addresses with a counter of their own. They take 30 MB when as many arrive within one window. */
const ADDRESSES = 2 ** 20;
/** More keys than a key file will have. */
const KEYS = 2 ** 16;

export interface MemoryLimiterOptions {
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
  readonly addresses?: number;
}

/** A limiter that answers synchronously. */
export interface MemoryLimiter extends Limiter {
  take(client: string, policy: Policy): Taken;
}

/**
 * Creates the limiter of one process. The memory store of rate-limiter-flexible was measured and rejected: its timer
 * per key costs 430 bytes per client and pauses of 0.1 s, and its two promises per call take 4 times as long
 * (bench/micro/limiter.ts).
 */
export function createMemoryLimiter({
  now = () => performance.now(),
  addresses = ADDRESSES,
}: MemoryLimiterOptions = {}): MemoryLimiter {
  const ofAddresses = windowsByLength(addresses);
  const ofKeys = windowsByLength(KEYS);
  const ofTokens = windowsByLength(addresses);
  return {
    take: (client, { limit, windowSeconds }) => {
      const isToken = client.startsWith(TOKEN_PREFIX);
      const ofSuch = client.startsWith(KEY_PREFIX) ? ofKeys : isToken ? ofTokens : ofAddresses;
      const windows = ofSuch(windowSeconds);
      // Use whole milliseconds: a sum of fractions minus one of them may exceed the window by rounding.
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

/** Windows by their length in seconds, of which there are three: see policy.ts. */
function windowsByLength(capacity: number): (seconds: number) => Windows {
  const bySeconds = new Map<number, Windows>();
  return (seconds) => getOrMake(bySeconds, seconds, () => new Windows(capacity, seconds * 1000));
}

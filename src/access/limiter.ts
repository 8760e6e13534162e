import type { Policy, Allowance } from './policy.ts';

/**
 * The limiter port: how many requests a client has left. Adapters: limiter-memory.ts (one process),
 * limiter-redis.ts (all processes that share a Redis).
 *
 * Every limiter promises:
 * - `take` counts one request and says whether it is within the policy. Refused requests are counted, too.
 * - `take` never rejects and never waits longer than about one second. When the counters cannot be reached, the
 *   limits apply per process.
 * - A client's window begins with its first request and lasts as long as the policy says. Then the client has the
 *   whole limit again. So a client can send up to two limits' worth of requests around the end of a window, never
 *   more.
 * - Memory is bounded, whatever client names arrive.
 */
export interface Limiter {
  /** `client` is the name from access/client.ts, or KEY_PREFIX or TOKEN_PREFIX and a name. */
  take(client: string, policy: Policy): Allowance | Promise<Allowance>;
  close(): Promise<void>;
}

/**
 * Prefix of the name of a client that sent an API key. There are only as many such clients as the key file has lines,
 * and a flood of addresses must not displace them. No address begins with this prefix.
 */
export const KEY_PREFIX = 'key:';

/** Prefix of clients with a token. Their number has no limit, so they displace neither addresses nor keys. */
export const TOKEN_PREFIX = 'jwt:';

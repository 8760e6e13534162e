/**
 * The limiter port: how many requests a client has left. Adapters: memory.ts (one process), redis.ts (all processes that
 * share a Redis).
 *
 * Promises of every limiter:
 * - `take` counts one request and says whether it is within the policy. Also refused ones are counted.
 * - It never rejects and never waits longer than about a second: when the place of the counters cannot be
 *   reached, limits go on per process.
 * - A client's window begins with its first request and lasts as long as the policy says; then it has the whole limit
 *   again. So a client can have two limits' worth around a window's end, never more.
 * - Memory is bounded whatever comes in as clients.
 */
export interface Limiter {
  /** `client` is what http/client.ts or a key's name (after KEY_PREFIX) says. */
  take(client: string): Taken | Promise<Taken>;
  close(): Promise<void>;
}

/** What a request left its client with. */
export interface Taken {
  readonly allowed: boolean;
  /** Requests left in this window. */
  readonly remaining: number;
  /** Whole seconds until the client has the full limit again, at least 1. */
  readonly resetSeconds: number;
}

/**
 * Begins the name of a client that showed an API key. Such clients are as few as the key file has lines, and no flood
 * of addresses may take their place; no address looks like it.
 */
export const KEY_PREFIX = 'key:';

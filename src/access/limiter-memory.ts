import { getOrMake } from '../base/get-or-make.ts';
import { KEY_PREFIX, TOKEN_PREFIX, type Limiter } from './limiter.ts';

/** The most clients with a counter of their own that begin within one window. They take about 20 MB. */
const CLIENTS = 2 ** 17;
/** The number of counters that further clients share. */
const SHARED = 1024;

interface MemoryLimiterOptions {
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
  readonly clients?: number;
}

/**
 * The limiter of one process. The memory store of rate-limiter-flexible was measured and rejected: 430 bytes per
 * client, pauses of 0.1 s by its timer per key, and 4 times as long per call (bench/micro/limiter.ts).
 */
export function createMemoryLimiter({
  now = () => performance.now(),
  clients = CLIENTS,
}: MemoryLimiterOptions = {}) {
  // Apart, so that a flood of one kind does not displace another.
  const ofAddresses = windowsByLength(clients);
  const ofKeys = windowsByLength(clients);
  const ofTokens = windowsByLength(clients);
  return {
    take: (client, { limit, windowSeconds }) => {
      const isToken = client.startsWith(TOKEN_PREFIX);
      const ofSuch = client.startsWith(KEY_PREFIX) ? ofKeys : isToken ? ofTokens : ofAddresses;
      // Use whole milliseconds: a sum of fractions minus one of them may exceed the window by rounding.
      const time = Math.floor(now());
      const { count, end } = ofSuch(windowSeconds)(client, time);
      return {
        allowed: count <= limit,
        remaining: Math.max(limit - count, 0),
        resetSeconds: Math.ceil((end - time) / 1000),
      };
    },
    close: () => Promise.resolve(),
  } satisfies Limiter;
}

/** Windows by their length in seconds, of which there are three: see policy.ts. */
function windowsByLength(capacity: number) {
  const bySeconds = new Map<number, ReturnType<typeof createWindows>>();
  return (seconds: number) => getOrMake(bySeconds, seconds, () => createWindows(seconds * 1000, capacity));
}

interface Window {
  count: number;
  readonly end: number;
}

/**
 * Returns a function that counts a request of a client and returns its window. Windows are kept for the turn of the clock
 * in which they begin, and for the next one, in which they end.
 *
 * When as many as `capacity` have begun in a turn, new clients are counted in SHARED counters, chosen by their names. No
 * running count is ever dropped for another client. A client that wants to evade its count needs more addresses than
 * that, and still gets only SHARED times the limit. Honest new clients may meet a used-up counter meanwhile.
 */
function createWindows(duration: number, capacity: number): (client: string, now: number) => Window {
  let older = new Map<string, Window>();
  let newer = new Map<string, Window>();
  let turn = 0;
  const running = (name: string, now: number): Window | undefined => {
    const window = newer.get(name) ?? older.get(name);
    return window && window.end > now ? window : undefined;
  };
  return (client, now) => {
    const current = Math.floor(now / duration);
    if (current !== turn) {
      older = current === turn + 1 ? newer : new Map<string, Window>();
      newer = new Map();
      turn = current;
    }
    let name = client;
    let window = running(name, now);
    if (!window && newer.size >= capacity) {
      name = sharedName(client);
      window = running(name, now);
    }
    if (window) window.count++;
    else newer.set(name, (window = { count: 1, end: now + duration }));
    return window;
  };
}

/** No client has such a name. */
function sharedName(client: string): string {
  let hash = 0;
  for (let i = 0; i < client.length; i++) hash = (Math.imul(hash, 31) + client.charCodeAt(i)) | 0;
  return `shared ${hash & (SHARED - 1)}`;
}

import { randomInt } from 'node:crypto';

/** The number of counters that clients share while every window is taken. A power of two. */
const SHARED = 1024;
/**
 * The number of windows freed for every new one. It is more than one, so that the windows of a flood are gone soon
 * after it.
 */
const FREED_AT_ONCE = 2;

/**
 * Counters of running windows, in bounded memory that costs the garbage collector nothing: columns of numbers, 28
 * bytes per client. Two generations of a Map were measured instead: 10^6 addresses take 144 MB instead of 26, their
 * growth stops the process for 0.2 s and more, and so does each full collection. A hit costs 0.04 µs instead of 0.08.
 *
 * All windows have the same length, so the one that began first ends first. Slots form a ring in the order in which
 * their windows began, and ended windows are at its old end. Clients are found by a seeded hash of 64 bits, so that
 * a client cannot construct an address that counts for another one.
 *
 * When all slots are in use, new clients are counted in SHARED counters, chosen by their hash. No running count is
 * ever dropped for another client. A client that wants to evade its count needs more addresses than there are slots,
 * and still gets only SHARED times the limit. Honest new clients may meet a used-up counter until windows end.
 */
export class Windows {
  /** The number of requests in the window of a slot. */
  readonly counts: Uint32Array;
  /** When the window of a slot ends. Milliseconds of the caller's clock. */
  readonly ends: Float64Array;
  readonly #capacity: number;
  readonly #duration: number;
  /**
   * Chains of slots by hash, newest first. 0 ends a chain, so links are stored as slot + 1. Untouched zeros take no
   * memory.
   */
  readonly #heads: Uint32Array;
  readonly #next: Uint32Array;
  readonly #lows: Int32Array;
  readonly #highs: Int32Array;
  readonly #seeds: readonly [number, number];
  #oldest = 0;
  #used = 0;

  /** `duration` is in milliseconds; `seeds` are for tests. */
  constructor(
    capacity: number,
    duration: number,
    seeds: readonly [number, number] = [randomInt(2 ** 32), randomInt(2 ** 32)],
  ) {
    this.#capacity = capacity;
    this.#duration = duration;
    this.#seeds = seeds;
    this.#heads = new Uint32Array(2 ** Math.ceil(Math.log2(capacity)));
    this.#next = new Uint32Array(capacity);
    this.#lows = new Int32Array(capacity);
    this.#highs = new Int32Array(capacity);
    this.counts = new Uint32Array(capacity + SHARED);
    this.ends = new Float64Array(capacity + SHARED);
  }

  /**
   * Counts one request and returns its slot, which holds the count and the end of the window. `now` must not
   * decrease.
   */
  count(client: string, now: number): number {
    // The hash is cyrb53 (two lanes of xor and multiply, each mixed into the other), inlined to avoid allocating an
    // object.
    let [low, high] = this.#seeds;
    for (let i = 0; i < client.length; i++) {
      const unit = client.charCodeAt(i);
      low = Math.imul(low ^ unit, 0x9e3779b1);
      high = Math.imul(high ^ unit, 0x5f356495);
    }
    low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35);
    high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35);
    const known = this.#find(low, high);
    if (known !== -1 && (this.ends[known] ?? 0) > now) {
      this.counts[known] = (this.counts[known] ?? 0) + 1;
      return known;
    }
    for (let i = 0; i < FREED_AT_ONCE; i++) this.#freeOldest(now);
    return this.#used < this.#capacity ? this.#begin(low, high, now) : this.#share(low, now);
  }

  #find(low: number, high: number): number {
    let link = this.#heads[this.#chain(low)] ?? 0;
    while (link !== 0 && (this.#lows[link - 1] !== low || this.#highs[link - 1] !== high))
      link = this.#next[link - 1] ?? 0;
    return link - 1;
  }

  #begin(low: number, high: number, now: number): number {
    const slot = (this.#oldest + this.#used++) % this.#capacity;
    const chain = this.#chain(low);
    this.#lows[slot] = low;
    this.#highs[slot] = high;
    this.counts[slot] = 1;
    this.ends[slot] = now + this.#duration;
    this.#next[slot] = this.#heads[chain] ?? 0;
    this.#heads[chain] = slot + 1;
    return slot;
  }

  #share(low: number, now: number): number {
    const slot = this.#capacity + (low & (SHARED - 1));
    const running = (this.ends[slot] ?? 0) > now;
    this.counts[slot] = running ? (this.counts[slot] ?? 0) + 1 : 1;
    if (!running) this.ends[slot] = now + this.#duration;
    return slot;
  }

  #freeOldest(now: number): void {
    const slot = this.#oldest;
    if (this.#used === 0 || (this.ends[slot] ?? 0) > now) return;
    // Chains go from new to old, so the link of the oldest slot is the last.
    const chain = this.#chain(this.#lows[slot] ?? 0);
    let before = this.#heads[chain] ?? 0;
    if (before === slot + 1) this.#heads[chain] = 0;
    else {
      while (this.#next[before - 1] !== slot + 1) before = this.#next[before - 1] ?? 0;
      this.#next[before - 1] = 0;
    }
    this.#oldest = (slot + 1) % this.#capacity;
    this.#used--;
  }

  #chain(low: number): number {
    return low & (this.#heads.length - 1);
  }
}

/**
 * What is open at present. Unlike a Set it keeps nothing that was removed: a Set that changes with each request leaves its
 * former tables to the garbage collector, with what they held and a reference to the next table, so that what one request
 * used survives until the next full collection.
 */
export class Registry<T extends object> {
  readonly #places: (T | null)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#places.length - this.#free.length;
  }

  /** Adds `one`. Returns the place that removes it. */
  add(one: T): number {
    const place = this.#free.pop() ?? this.#places.length;
    this.#places[place] = one;
    return place;
  }

  /** Removes what was added at a place, unless that was removed before: another may have the place since. */
  remove(place: number, one: T): void {
    if (this.#places[place] !== one) return;
    this.#places[place] = null;
    this.#free.push(place);
  }

  /** A copy of what is open now. */
  all(): T[] {
    return this.#places.filter((one) => one !== null);
  }
}

/**
 * What is open now. It keeps nothing removed, unlike a Set, whose former tables refer to the next one: with them, what
 * one request used would survive until the next full collection.
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

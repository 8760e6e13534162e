/** A map in bounded memory: two generations of `size` entries, of which the older is dropped when the newer is full. */
export class RecentMap<V> {
  readonly #size: number;
  #newer = new Map<string, V>();
  #older = this.#newer;

  constructor(size: number) {
    this.#size = size;
  }

  get(key: string): V | undefined {
    return this.#newer.get(key) ?? this.#older.get(key);
  }

  set(key: string, value: V): void {
    if (this.#newer.size >= this.#size) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(key, value);
  }

  clear(): void {
    this.#newer = new Map();
    this.#older = this.#newer;
  }
}

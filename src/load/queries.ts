/** What a reader of pages asks for. */
export interface PageQuery {
  /** Path and query, as they are sent. */
  readonly path: string;
  /** Whether its pages are followed from one to the next by cursors. */
  readonly walks: boolean;
  readonly weight: number;
}

/** The name of a query in results. */
export function nameOf({ path, walks }: PageQuery): string {
  return walks ? `walk:${path}` : path;
}

/** Chooses queries by their weights. */
export class Mix {
  readonly #queries: readonly PageQuery[];
  readonly #random: () => number;
  readonly #sum: number;

  /** `random`: a number from 0 up to but not including 1. */
  constructor(queries: readonly PageQuery[], random: () => number) {
    this.#queries = queries;
    this.#random = random;
    this.#sum = queries.reduce((sum, { weight }) => sum + weight, 0);
  }

  next(): PageQuery {
    let left = this.#random() * this.#sum;
    const query = this.#queries.find(({ weight }) => (left -= weight) < 0) ?? this.#queries[0];
    if (!query) throw new TypeError('a mix needs a query');
    return query;
  }

  /** The share of each query, from 0 to 1. */
  shares(): { readonly query: string; readonly share: number }[] {
    return this.#queries.map((query) => ({
      query: nameOf(query),
      share: Math.round((query.weight / this.#sum) * 1000) / 1000,
    }));
  }
}

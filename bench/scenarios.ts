/** What is measured: a request, who answers it, and how the answer is checked. */
export interface Scenario {
  readonly name: string;
  readonly shows: string;
  readonly kind: 'stream' | 'page';
  /** Path and query at sluice and at the peers. */
  readonly path: string;
  /** Sort for the limit process. */
  readonly sort: string;
  /** Concurrent connections; 1 for streams. */
  readonly connections: number;
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'stream-id',
    shows: 'the whole set in id order',
    kind: 'stream',
    path: '/items/stream',
    sort: 'id_asc',
    connections: 1,
  },
  {
    name: 'stream-price',
    shows: 'the whole set in price order',
    kind: 'stream',
    path: '/items/stream?sort=price_asc',
    sort: 'price_asc',
    connections: 1,
  },
  {
    name: 'page-price',
    shows: 'pages of 100 by price, 32 connections',
    kind: 'page',
    path: '/items?sort=price_asc&limit=100',
    sort: 'price_asc',
    connections: 32,
  },
];

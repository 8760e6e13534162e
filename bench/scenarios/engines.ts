import { PAGE_BY_PRICE, STREAM, type Scenario } from './scenario.ts';

/** The most rows of a stream: what is compared is the way to the socket. */
const MOST_ROWS = 300_000;

/** What the two HTTP servers cost, on the store that costs least. */
export function engines(rows: number): Scenario[] {
  const on = { sqlite: ['sluice', 'sluice, node:http'] } as const;
  const both = { group: 'others', set: 'default', on } as const;
  return [
    {
      ...both,
      kind: 'requests',
      name: 'engine-page',
      shows: '100 by price on 32 connections, by both HTTP servers',
      path: PAGE_BY_PRICE,
      connections: 32,
    },
    {
      ...both,
      kind: 'requests',
      name: 'engine-connections',
      shows: '100 by price on 1,000 connections, by both HTTP servers',
      path: PAGE_BY_PRICE,
      connections: 1000,
    },
    {
      ...both,
      kind: 'stream',
      name: 'engine-stream',
      shows: 'rows in id order, by both HTTP servers',
      path: `${STREAM}?limit=${Math.min(rows, MOST_ROWS)}`,
      encoding: 'identity',
      streams: 1,
    },
    {
      ...both,
      kind: 'stalled',
      name: 'engine-stalled',
      shows: 'pages beside 1,000 readers that take nothing, by both HTTP servers',
      readers: 1000,
      connections: 8,
      stream: STREAM,
      page: PAGE_BY_PRICE,
    },
  ];
}

import { PAGE, PAGE_BY_PRICE, PAIR, type Scenario } from './scenario.ts';

export function pages(rows: number): Scenario[] {
  const page = { kind: 'requests', group: 'pages', set: 'quick', connections: 32 } as const;
  const on = { mongodb: ['sluice', 'bare uWS', 'fastify', 'fastify raw'], sqlite: ['sluice'] } as const;
  const allPeers = { ...on, mongodb: [...on.mongodb, 'node:http', 'express'] } as const;
  return [
    { ...page, name: 'page-first', shows: 'the first 100 by id', path: PAGE, on, set: 'default' },
    {
      ...page,
      name: 'page-deep',
      shows: 'by id, from a cursor at nine tenths',
      path: PAGE,
      depth: Math.floor(rows * 0.9),
      on: { mongodb: PAIR, sqlite: ['sluice'] },
    },
    {
      ...page,
      name: 'page-category',
      shows: 'the first 100 of a category',
      path: `${PAGE}&category=toys`,
      on,
      set: 'default',
    },
    {
      kind: 'open-pages',
      group: 'pages',
      name: 'page-open',
      shows: 'the first 100 by id, by a schedule at half of the highest rate',
      path: PAGE,
      connections: 32,
      set: 'quick',
      on: { mongodb: PAIR, sqlite: ['sluice'] },
    },
    {
      ...page,
      name: 'page-price',
      shows: 'the first 100 by price',
      path: PAGE_BY_PRICE,
      needsWarmth: true,
      on: allPeers,
    },
  ];
}

/** Pages by offset and by cursor, at several depths. */
export function depths(rows: number): Scenario[] {
  const at = [0, 1_000, 10_000, 100_000, 300_000, 900_000].filter((depth) => depth < rows);
  return (['cursor', 'offset'] as const).flatMap((style) =>
    at.map((depth): Scenario => ({
      kind: 'requests',
      group: 'depth',
      name: `${style}-${depth}`,
      shows: `100 by id behind ${depth} rows, by ${style}, one connection`,
      path: PAGE,
      connections: 1,
      depth,
      style,
      x: depth,
      effort: 0.5,
      set: depth === 0 || depth === 10_000 ? 'quick' : 'default',
      on: { mongodb: PAIR, sqlite: ['sluice'] },
    })),
  );
}

export function connections(): Scenario[] {
  return [1, 8, 32, 128, 512].map((count): Scenario => ({
    kind: 'requests',
    group: 'connections',
    name: `connections-${count}`,
    shows: `100 by price on ${count} connections`,
    path: PAGE_BY_PRICE,
    connections: count,
    x: count,
    effort: 0.5,
    set: count === 8 ? 'quick' : count === 512 ? 'full' : 'default',
    on: { mongodb: PAIR },
  }));
}

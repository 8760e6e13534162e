import { FORMATS } from '../../src/resources/stream/formats/list.ts';
import { PAGE, PAGE_BY_PRICE, PAIR, STREAM, type Scenario } from './scenario.ts';

export function others(): Scenario[] {
  const other = { group: 'others', set: 'quick' } as const;
  const limited = { mongodb: ['sluice, limited', 'fastify, limited'] } as const;
  return [
    {
      ...other,
      kind: 'users',
      name: 'users',
      shows: 'POST, GET, PATCH, PUT, DELETE of users',
      connections: 32,
      on: { mongodb: PAIR, sqlite: ['sluice'] },
    },
    {
      ...other,
      kind: 'requests',
      name: 'rate-limited',
      shows: 'requests beyond the rate limit',
      path: PAGE,
      connections: 32,
      status: 429,
      on: limited,
    },
    {
      ...other,
      kind: 'cold-start',
      name: 'cold-start',
      shows: 'from the start of a process to its first page',
      path: '/items?limit=1',
      on: { mongodb: PAIR, sqlite: ['sluice'] },
    },
    {
      ...other,
      kind: 'first-row',
      name: 'first-row',
      shows: 'the first bytes of a stream of all rows',
      path: STREAM,
      starts: 200,
      on: { mongodb: PAIR, sqlite: ['sluice'] },
    },
    ...exports(),
    ...frames(),
    ...(['ndjson', 'arrow'] as const).map((form): Scenario => ({
      kind: 'clickhouse',
      group: 'others',
      form,
      set: form === 'ndjson' ? 'quick' : 'default',
      name: `clickhouse-${form}`,
      shows: `all items out of a table of ClickHouse into a pipe, one thread, as ${form}`,
      on: { sqlite: ['sluice'] },
    })),
    ...(
      [
        [100, 'quick'],
        [1000, 'default'],
        [5000, 'full'],
      ] as const
    ).map(([readers, set]): Scenario => ({
      ...other,
      kind: 'stalled',
      name: `stalled-${readers}`,
      shows: `pages beside ${readers} readers that take nothing`,
      readers,
      connections: 8,
      stream: STREAM,
      page: PAGE_BY_PRICE,
      set,
      // No peers: a peer that buffers for these readers takes all memory, dies, and ends the run with it.
      on: { mongodb: ['sluice'], sqlite: ['sluice'] },
    })),
    {
      ...other,
      kind: 'beside-streams',
      name: 'pages-beside-streams',
      shows: 'pages by price beside 8 streams read at full speed',
      stream: STREAM,
      streams: 8,
      page: PAGE_BY_PRICE,
      connections: 8,
      on: { mongodb: PAIR, sqlite: ['sluice'] },
    },
    {
      kind: 'slow-reader',
      group: 'memory',
      set: 'quick',
      name: 'slow-reader',
      shows: 'a reader of 2 MB/s asks for 200,000 rows',
      path: `${STREAM}?limit=200000`,
      first: PAGE,
      bytesPerSecond: 2e6,
      periods: 2,
      on: { mongodb: ['sluice', 'fastify', 'express'] },
    },
  ];
}

/**
 * Each format in each compression. Four have pages beside them, on both stores. The others show the cost of
 * the work itself, which does not depend on the source of the rows. Compression takes long, and an eighth of
 * the rows is enough to measure it.
 */
function exports(): Scenario[] {
  const withPages = [
    ['ndjson', 'none'],
    ['csv', 'gzip'],
    ['json', 'br'],
    ['parquet', 'none'],
  ] as const;
  const exported = { kind: 'exports', group: 'others' } as const;
  const alone = FORMATS.flatMap(({ name, compressions }) =>
    compressions.map((compression) => [name, compression] as const),
  );
  return [
    ...withPages.map(([format, compression], n): Scenario => ({
      ...exported,
      name: `exports-${format}-${compression}`,
      shows: `two exports of all rows as ${format}, compression ${compression}, and pages beside them`,
      body: { resource: 'items', format, compression },
      atOnce: 2,
      beside: { page: PAGE_BY_PRICE, connections: 8 },
      set: n === 0 ? 'quick' : 'default',
      on: { mongodb: ['sluice'], sqlite: ['sluice'] },
    })),
    ...alone.map(([format, compression]): Scenario => ({
      ...exported,
      name: `export-${format}-${compression}`,
      shows: `an export of ${compression === 'none' ? 'all rows' : 'one category of eight'} as ${format}, compression ${compression}`,
      body: { resource: 'items', format, compression, ...(compression !== 'none' && { category: 'toys' }) },
      atOnce: 1,
      set: 'default',
      on: { sqlite: ['sluice'] },
    })),
  ];
}

/** All items into data frames, in each format, and by a client of MongoDB that makes tables of Arrow itself. */
function frames(): Scenario[] {
  return (['polars', 'pandas'] as const).flatMap((into) =>
    (['ndjson', 'csv', 'arrow', 'pymongoarrow'] as const).map((from): Scenario => ({
      kind: 'frames',
      group: 'others',
      into,
      from,
      name: `frames-${into}-${from}`,
      shows:
        from === 'pymongoarrow'
          ? `all items into ${into}, straight from MongoDB with pymongoarrow`
          : `all items into ${into}, as ${from}`,
      set: into === 'polars' && from === 'arrow' ? 'quick' : 'default',
      on: from === 'pymongoarrow' ? { mongodb: ['sluice'] } : { mongodb: ['sluice'], sqlite: ['sluice'] },
    })),
  );
}

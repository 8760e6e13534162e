import { PAIR, STREAM, type Scenario } from './scenario.ts';

const LIMITS = ['bare chain', 'socket drain', 'bare uWS'] as const;
const SQLITE_LIMITS = ['bare chain', 'bare statement', 'bare uWS'] as const;
const COMPRESSED = ['sluice', 'fastify + compress', 'fastify + compress, quality 1'] as const;
/** The number of rows in all, for streams that are slow at the peers, or that are many. */
const FEWER_ROWS = 300_000;
/** What part of these rows each of several streams has. Linux counts CPU in 10 ms, and 8 streams of an eighth take 0.14 s. */
const PARTS = { 8: 2, 64: 8, 256: 32 } as const;

/** Whole streams of a store with `rows` items. */
export function streams(rows: number): Scenario[] {
  const some = Math.min(rows, FEWER_ROWS);
  const whole = { kind: 'stream', group: 'streams', set: 'quick', encoding: 'identity', streams: 1 } as const;
  const byId = { sort: 'id_asc' };
  const byPrice = { sort: 'price_asc' };
  return [
    {
      ...whole,
      name: 'stream-id',
      shows: 'the whole set in id order',
      path: STREAM,
      asked: byId,
      on: {
        mongodb: ['sluice', ...LIMITS, 'fastify', 'fastify raw', 'fastify cursor.stream()', 'node:http'],
        sqlite: ['sluice', ...SQLITE_LIMITS],
      },
    },
    {
      ...whole,
      name: 'stream-price',
      shows: 'the whole set in price order',
      path: `${STREAM}?sort=price_asc`,
      asked: byPrice,
      on: { mongodb: ['sluice', ...LIMITS, 'fastify', 'fastify raw'], sqlite: ['sluice', ...SQLITE_LIMITS] },
    },
    {
      ...whole,
      name: 'stream-category',
      shows: 'one category of eight',
      path: `${STREAM}?category=toys`,
      asked: { ...byId, category: 'toys' },
      set: 'full',
      on: {
        mongodb: ['sluice', 'bare chain', 'fastify', 'fastify raw'],
        sqlite: ['sluice', 'bare chain', 'bare statement'],
      },
    },
    {
      ...whole,
      name: 'stream-array',
      shows: 'as one JSON array',
      path: `${STREAM}?format=json&limit=${some}`,
      on: { mongodb: PAIR, sqlite: ['sluice'] },
    },
    {
      ...whole,
      name: 'stream-arrow',
      shows: 'the whole set in id order, as Arrow',
      path: `${STREAM}?format=arrow`,
      form: 'arrow',
      lines: STREAM,
      set: 'default',
      on: { mongodb: ['sluice'], sqlite: ['sluice'] },
    },
    {
      ...whole,
      name: 'stream-gzip',
      shows: 'compressed with gzip',
      path: `${STREAM}?limit=${some}`,
      encoding: 'gzip',
      x: 'gzip',
      on: { mongodb: COMPRESSED },
    },
    {
      ...whole,
      name: 'stream-br',
      shows: 'compressed with Brotli',
      path: `${STREAM}?limit=${some}`,
      encoding: 'br',
      x: 'br',
      on: { mongodb: COMPRESSED, sqlite: ['sluice'] },
    },
    {
      ...whole,
      name: 'stream-checkpoints',
      shows: 'with checkpoints and their CRCs',
      path: `${STREAM}?checkpoints=true`,
      set: 'default',
      on: { mongodb: ['sluice'], sqlite: ['sluice'] },
    },
    {
      kind: 'clients',
      group: 'streams',
      set: 'quick',
      path: STREAM,
      name: 'stream-node-fetch',
      shows: "by Node's fetch with its default headers",
      on: { mongodb: ['sluice'], sqlite: ['sluice'] },
    },
    {
      kind: 'clients',
      group: 'streams',
      set: 'default',
      path: STREAM,
      coding: 'identity',
      name: 'stream-node-fetch-identity',
      shows: "by Node's fetch with Accept-Encoding: identity",
      on: { mongodb: ['sluice'], sqlite: ['sluice'] },
    },
    ...[1, 2, 4].map((parts): Scenario => ({
      ...whole,
      kind: 'partitions',
      name: `partitions-${parts}`,
      shows: `the whole set in ${parts} parts at once`,
      path: '/items/partitions',
      parts,
      set: parts === 2 ? 'quick' : 'default',
      on: { mongodb: ['sluice', 'sluice, two workers'] },
    })),
    ...[1, 4].map((parallel): Scenario => ({
      ...whole,
      kind: 'pull',
      name: `pull-${parallel}`,
      shows: `sluice pull, ${parallel} at once, into a file`,
      path: STREAM,
      parallel,
      set: parallel === 4 ? 'quick' : 'default',
      on: { mongodb: ['sluice', 'sluice, two workers'], sqlite: ['sluice'] },
    })),
    ...([8, 64, 256] as const).map((count): Scenario => ({
      ...whole,
      name: `streams-${count}`,
      shows: `${count} streams at once`,
      path: `${STREAM}?limit=${Math.floor(some / PARTS[count])}`,
      streams: count,
      set: count === 8 ? 'quick' : 'default',
      on: { mongodb: count === 8 ? ['sluice', 'fastify', 'fastify raw'] : ['sluice'], sqlite: ['sluice'] },
    })),
    {
      ...whole,
      name: 'streams-64-fresh',
      shows: '64 streams at once, the first requests to a new server',
      path: `${STREAM}?limit=${Math.floor(some / 8)}`,
      streams: 64,
      isFresh: true,
      set: 'default',
      on: { mongodb: ['sluice'], sqlite: ['sluice'] },
    },
  ];
}

/** Streams of sets of several sizes. The cost of a row must not depend on the number of rows. */
export function sizes(rows: number): Scenario[] {
  return [0.01, 0.1, 1, 10].map((scale): Scenario => ({
    kind: 'stream',
    group: 'sizes',
    name: `size-${Math.round(rows * scale)}`,
    shows: `all of ${Math.round(rows * scale)} items`,
    path: STREAM,
    encoding: 'identity',
    streams: 1,
    asked: { sort: 'id_asc' },
    scale,
    x: Math.round(rows * scale),
    set: scale === 10 ? 'full' : scale === 1 ? 'quick' : 'default',
    on: { mongodb: ['sluice', 'bare chain'], sqlite: ['sluice'] },
  }));
}

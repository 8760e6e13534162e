import { STREAM, type Scenario } from './scenario.ts';

const ORDERS = '/orders';
/** A page by an index of two fields: an equality, and the newest first. */
export const ORDERS_PAGE = `${ORDERS}?status=paid&sort=createdAt_desc&limit=100`;

/** A resource with four indexes and nested fields, made by `sluice import --into orders`. */
export function orders(): Scenario[] {
  const on = {
    mongodb: ['sluice', 'bare uWS', 'fastify', 'fastify raw'],
    sqlite: ['sluice', 'bare uWS'],
  } as const;
  const shared = { needs: 'orders', set: 'quick', on } as const;
  const stream = { ...shared, kind: 'stream', group: 'streams', encoding: 'identity', streams: 1 } as const;
  return [
    {
      ...shared,
      kind: 'requests',
      group: 'pages',
      name: 'orders-page',
      shows: 'orders: the newest 100 of a status, by an index of two fields',
      path: ORDERS_PAGE,
      connections: 32,
    },
    {
      ...stream,
      name: 'orders-stream-id',
      shows: 'orders: all, in id order',
      path: `${ORDERS}/stream`,
      asked: { sort: 'id_asc', collection: 'orders' },
      on: { ...on, mongodb: [...on.mongodb, 'socket drain'] },
    },
    {
      ...stream,
      name: 'orders-stream-country',
      shows: 'orders: those of one country of eight, by an index of a nested field',
      path: `${ORDERS}/stream?customer.country=DE&sort=createdAt_asc`,
      set: 'default',
    },
  ];
}

/** Imports of files, as their users start them. */
export function imports(): Scenario[] {
  const on = { mongodb: ['sluice', 'bare insertMany'], sqlite: ['sluice', 'bare inserts'] } as const;
  const shared = { kind: 'imports', group: 'imports', on } as const;
  return [
    {
      ...shared,
      name: 'load-ndjson',
      shows: 'sluice import of an NDJSON file of items into an empty store',
      form: 'ndjson',
      args: [],
      set: 'quick',
    },
    {
      ...shared,
      name: 'load-csv',
      shows: 'sluice import of a CSV file of items into an empty store',
      form: 'csv',
      args: ['--type', '_id=objectid,createdAt=date,updatedAt=date'],
      set: 'default',
    },
  ];
}

/** The changes of the orders, and streams that follow. */
export function changes(): Scenario[] {
  const on = { mongodb: ['sluice'], sqlite: ['sluice'] } as const;
  const changing = { group: 'changes', needs: 'orders', on, set: 'quick' } as const;
  const idle = (count: number): Scenario => ({
    ...changing,
    kind: 'followers',
    name: `changes-idle-${count}`,
    shows: `pages of orders beside ${count} idle followers`,
    followers: count,
    page: ORDERS_PAGE,
    connections: 8,
  });
  return [
    idle(2_000),
    { ...idle(5_000), set: 'full' },
    {
      ...changing,
      kind: 'followers',
      name: 'changes-page',
      shows: 'pages of orders beside 1000 followers of 100 orders that change 10,000 times a second',
      followers: 1_000,
      changesPerSecond: 10_000,
      page: ORDERS_PAGE,
      connections: 8,
      set: 'default',
    },
    {
      ...changing,
      kind: 'change-events',
      name: 'changes-events',
      shows: 'one follower of 1000 orders that change up to 25,000 times a second',
      changesPerSecond: 25_000,
      rows: 1_000,
      on: { ...on, mongodb: ['sluice', 'fastify + watch'] },
    },
    {
      kind: 'follow-walk',
      group: 'changes',
      set: 'quick',
      name: 'follow-walk',
      shows: 'all items by a stream that follows, up to its changes',
      path: STREAM,
      on,
    },
  ];
}

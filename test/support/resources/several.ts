import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { Copy, type Answer } from './copy.ts';
import { bearer, keyedServer, type KeyedServer, type KeyGiven, type Rows } from '../access/keyed.ts';
import { tableIn, type Table } from '../store/parts.ts';
import type { EngineName, Skipped, StoreName } from '../process/server.ts';

const rowsOf = (name: string): Rows => ({
  name,
  rows: [{ _id: `${name}-0`, tenant: 'acme' }],
  indexes: [['tenant']],
});
const SETS = [rowsOf('orders'), rowsOf('customers')] as const;
/** The part of the key `acme`. */
export const WHERE = { orders: { tenant: 'acme' }, customers: { tenant: 'acme' } };
export const KEYS: readonly KeyGiven[] = [
  { name: 'all' },
  { name: 'acme', where: WHERE },
  { name: 'orders-only', resources: ['orders'] },
  { name: 'reads', resources: ['orders', 'customers'], actions: ['read', 'stream'] },
  { name: 'one-stream', streams: 1 },
];
/** The changes of both sets. */
export const PATH = '/changes?resources=orders,customers';

export interface Opened {
  readonly server: KeyedServer;
  readonly orders: Table;
  readonly customers: Table;
}

/** A server with two sets. Null when the test was skipped. */
export async function opened<S extends StoreName>(
  t: TestContext,
  store: S,
  engine: EngineName = 'uws',
): Promise<Opened | Skipped<S>> {
  const settings = { RATE_LIMIT: 'off', HTTP_ENGINE: engine };
  const server = await keyedServer(t, store, KEYS, SETS, settings, { heartbeatMs: 20 });
  if (!server) return null as Skipped<S>;
  t.after(() => assert.equal(server.slots.taken, 0, 'every slot was released'));
  const orders = await tableIn(t, server, SETS[0]);
  const customers = await tableIn(t, server, SETS[1]);
  return { server, orders, customers };
}

/** The lines of rows and removals, sorted. */
export function dataOf({ lines }: Answer): string[] {
  return lines.filter((line) => !/^\{"(checkpoint|end|error)":/.test(line)).sort();
}

/** The whole answer of one request. */
export async function ask(
  { server }: Opened,
  query = '',
  name = 'all',
): Promise<Answer & { cursor: string }> {
  const copy = new Copy(false, bearer(name));
  const answer = await copy.read(server.url + PATH + query);
  assert.equal(answer.status, 200, answer.problem);
  return { ...answer, cursor: copy.cursor ?? '' };
}

/** The problem that a request is refused with. */
export async function problemOf({ server }: Opened, path: string, name = 'all') {
  const response = await server.as(name, path);
  const problem = (await response.json()) as { code: string; parameter?: string; detail: string };
  return { status: response.status, location: response.headers.get('location'), ...problem };
}

export const order = (id: string, n = 0) =>
  `{"resource":"orders","row":{"id":"${id}","tenant":"acme","n":${n}}}`;
export const customer = (id: string, n = 0) =>
  `{"resource":"customers","row":{"id":"${id}","tenant":"acme","n":${n}}}`;
export const row = (_id: string, n = 0) => ({ _id, tenant: 'acme', n });

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { jwtSettings, signingPair, testIssuer, type SigningPair, type TestIssuer } from './issuer.ts';
import { keyedServer, type KeyedServer, type Rows } from './keyed.ts';
import { logTo } from './log-lines.ts';
import type { StoreName } from '../process/server.ts';

const ORDERS = Array.from({ length: 20 }, (_, n) => ({
  ...{ _id: n, tenant: n % 2 ? 'acme' : 'other', margin: n },
}));
const RESOURCES: readonly Rows[] = [
  ...['orders', 'secrets'].map((name) => ({ name, rows: ORDERS, indexes: [['tenant']] })),
  { name: 'users', rows: [], indexes: [['metadata.tenant']] },
];
export const READ = { resources: ['orders'], actions: ['read', 'stream', 'export'] };
export const ACME = { ...READ, where: { orders: { tenant: 'acme' } }, hide: { orders: ['margin'] } };

export interface Tokened {
  readonly server: KeyedServer;
  readonly issuer: TestIssuer;
  readonly pair: SigningPair;
  readonly ask: (token: string, path?: string, options?: RequestInit) => Promise<Response>;
  readonly lines: string[];
}

export async function tokenServer(t: TestContext, more: Record<string, string> = {}): Promise<Tokened> {
  const opened = await tokenServerOn(t, 'sqlite', more);
  assert.ok(opened);
  return opened;
}

/** The same on a store of this kind. Null, and the test is skipped, without a mongod. */
export async function tokenServerOn(
  t: TestContext,
  store: StoreName,
  more: Record<string, string> = {},
): Promise<Tokened | null> {
  const pair = await signingPair('one');
  const issuer = await testIssuer(t, [pair]);
  const lines: string[] = [];
  const settings = { ...jwtSettings(issuer), ...more };
  const keys = [{ name: 'plain' }, { name: 'ada', ...READ }];
  const server = await keyedServer(t, store, keys, RESOURCES, settings, { log: logTo(lines) });
  if (!server) return null;
  const ask = (token: string, path = '/orders', options: RequestInit = {}) =>
    fetch(server.url + path, { ...options, headers: { authorization: `Bearer ${token}` } });
  return { server, issuer, pair, ask, lines };
}

/** The status, the words and the challenge of a refusal. */
export async function refusal(answer: Response): Promise<string> {
  const { detail } = (await answer.json()) as { detail: string };
  return `${answer.status} ${detail} ${answer.headers.get('www-authenticate')}`;
}

import type { TestContext } from 'node:test';
import { jwtSettings, signingPair, testIssuer, type SigningPair, type TestIssuer } from './issuer.ts';
import { keyedServer, type KeyedServer } from './keyed.ts';
import { logTo } from './log-lines.ts';

const ORDERS = Array.from({ length: 20 }, (_, n) => ({
  ...{ _id: n, tenant: n % 2 ? 'acme' : 'other', margin: n },
}));
const RESOURCES = ['orders', 'secrets'].map((name) => ({ name, rows: ORDERS, indexes: [['tenant']] }));
export const READ = { resources: ['orders'], actions: ['read', 'stream', 'export'] };
export const ACME = { ...READ, where: { orders: { tenant: 'acme' } }, hide: { orders: ['margin'] } };

export interface Tokened {
  readonly server: KeyedServer;
  readonly issuer: TestIssuer;
  readonly pair: SigningPair;
  readonly ask: (token: string, path?: string) => Promise<Response>;
  readonly lines: string[];
}

export async function tokenServer(t: TestContext, more: Record<string, string> = {}): Promise<Tokened> {
  const pair = await signingPair('one');
  const issuer = await testIssuer(t, [pair]);
  const lines: string[] = [];
  const settings = { ...jwtSettings(issuer), ...more };
  const keys = [{ name: 'plain' }, { name: 'ada', ...READ }];
  const server = await keyedServer(t, 'sqlite', keys, RESOURCES, settings, { log: logTo(lines) });
  const ask = (token: string, path = '/orders') =>
    fetch(server.url + path, { headers: { authorization: `Bearer ${token}` } });
  return { server, issuer, pair, ask, lines };
}

/** The status, the words and the challenge of a refusal. */
export async function refusal(answer: Response): Promise<string> {
  const { detail } = (await answer.json()) as { detail: string };
  return `${answer.status} ${detail} ${answer.headers.get('www-authenticate')}`;
}

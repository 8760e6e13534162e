/**
 * The cost of keys for a request: node --import tsx bench/micro/keys.ts [requests]
 *
 * Measures admission and the decision whether a route may be used, by CPU time of this process. Candidates alternate, so
 * that a busy machine slows all of them alike. Figures are minima of the rounds. The answer of each candidate is
 * asserted first.
 */
import assert from 'node:assert/strict';
import { Admissions } from '../../src/access/admission.ts';
import { createClientReader } from '../../src/access/client.ts';
import { Keyring, sha256, type Authenticate, type Key } from '../../src/access/keys.ts';
import { createMemoryLimiter } from '../../src/access/limiter-memory.ts';
import { authenticateBy } from '../../src/access/open.ts';
import { parseTrustedProxies } from '../../src/access/proxies.ts';
import { ALL_RIGHTS, rightsOf } from '../../src/access/rights.ts';
import { createStreamSlots } from '../../src/access/stream-slots.ts';
import { Tokens } from '../../src/access/tokens.ts';
import { newNotes, type Request } from '../../src/engine/edge.ts';
import { mayKnow, mayUse } from '../../src/http/permit.ts';
import { inSeconds, AUDIENCE, ISSUER, signingPair, tokenOf } from '../../test/support/access/issuer.ts';

const ROUNDS = 15;
const count = Number(process.argv[2]) || 100_000;
const policy = { limit: 1_000_000_000, windowSeconds: 3600 };
const { trusts } = parseTrustedProxies('loopback');
const ROUTE = { access: 'keyed', cost: 'page', right: 'read', resource: 'orders' } as const;
const SCOPED = {
  resources: ['orders'],
  actions: ['read', 'stream'],
  where: { orders: { tenant: 'acme' } },
  hide: { orders: ['margin'] },
} as const;

const keyOf = (name: string, rights: Key['rights']): Key => ({
  name,
  rights,
  expires: Infinity,
  digest: sha256(`secret-of-${name}`),
});
const keyring = new Keyring([keyOf('plain', ALL_RIGHTS), keyOf('scoped', rightsOf(SCOPED))]);
const byKeyring: Authenticate = (authorization) => keyring.authenticate(authorization);

const pair = await signingPair('one', 'RS256');
const tokens = new Tokens({
  settings: {
    url: '',
    issuer: ISSUER,
    audience: AUDIENCE,
    claim: 'sluice',
    roles: new Map(),
    fallback: null,
  },
  check: { fetchedAt: 0, verify: () => Promise.resolve() },
  faultsOf: () => Promise.resolve([]),
});
const byTokens = authenticateBy(keyring, tokens);

interface Candidate {
  readonly name: string;
  readonly run: () => void;
}

function candidate(name: string, authenticate: Authenticate | null, credential?: string): Candidate {
  const admissions = new Admissions({
    readClient: createClientReader({ trusts, onWarning: (message) => assert.fail(message) }),
    authenticate,
    rate: { policy: () => policy, limiter: createMemoryLimiter() },
    slots: createStreamSlots({ perClient: 64, total: 5000 }),
  });
  const headers = credential === undefined ? {} : { authorization: `Bearer ${credential}` };
  const request: Request = {
    method: 'GET',
    path: '/orders',
    query: 'limit=50',
    address: '192.0.2.1',
    notes: newNotes(),
    headers: { host: 'localhost', accept: '*/*', ...headers },
    signal: new AbortController().signal,
    body: () => Promise.resolve(new Uint8Array(0)),
  };
  const run = () => {
    const admission = admissions.admit(request, ROUTE);
    assert.ok(!(admission instanceof Promise) && admission.refused === null);
    assert.ok(mayKnow(admission.client, 'orders') && mayUse(admission.client, ROUTE));
    admission.done();
  };
  return { name, run };
}

const token = await tokenOf(pair, { sluice: SCOPED, exp: inSeconds(36_000) });
await tokens.authenticate(token, sha256(token));
const candidates = [
  candidate('no keys', null),
  candidate('plain key', byKeyring, 'secret-of-plain'),
  candidate('key with where and hide', byKeyring, 'secret-of-scoped'),
  candidate('key with where and hide, tokens on', byTokens, 'secret-of-scoped'),
  candidate(`remembered token of ${token.length} characters`, byTokens, token),
];

const times = new Map(candidates.map(({ name }) => [name, [] as number[]]));
for (let round = 0; round <= ROUNDS; round++)
  for (const { name, run } of candidates) {
    const before = process.cpuUsage();
    for (let i = 0; i < count; i++) run();
    const { user, system } = process.cpuUsage(before);
    if (round > 0) times.get(name)?.push((user + system) / count);
  }
const least = (all: readonly number[]) => Math.min(...all);
const base = least(times.get('no keys') ?? []);
for (const [name, all] of times) {
  const µs = least(all);
  process.stdout.write(`${name.padEnd(42)} ${µs.toFixed(2)} µs  +${(µs - base).toFixed(2)} µs\n`);
}

/**
 * The cost of admitting a request: node --import tsx bench/micro/limiter.ts [requests]
 *
 * Measures client, key and rate in memory, including the text of both headers, as every request pays for
 * them. Candidates alternate, so that a busy machine slows all of them alike. Figures are medians of the
 * rounds. The answer of each candidate is asserted first.
 */
import assert from 'node:assert/strict';
import { cpus } from 'node:os';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { Admissions } from '../../src/access/admission.ts';
import { createClientReader } from '../../src/access/client.ts';
import type { Request } from '../../src/engine/edge.ts';
import { newNotes } from '../../src/engine/edge.ts';
import { Keyring, sha256 } from '../../src/access/keys.ts';
import { ALL_RIGHTS } from '../../src/access/rights.ts';
import { parseTrustedProxies } from '../../src/access/proxies.ts';
import { createMemoryLimiter } from '../../src/access/limiter-memory.ts';
import { limitHeaders } from '../../src/access/policy.ts';
import { createStreamSlots } from '../../src/access/stream-slots.ts';
import { median } from '../results.ts';

const ROUNDS = 9;
/** The number of clients that alternate in the warm cases. */
const CLIENTS = 1000;

const count = Number(process.argv[2]) || 200_000;
const policy = { limit: 1_000_000_000, windowSeconds: 3600 };
const { trusts } = parseTrustedProxies('loopback');
const key = 'kJ8s0Xv3mB5nQ7rT2wY4zA6cE9fH1gL0';
const keyring = new Keyring([{ name: 'bench', digest: sha256(key), rights: ALL_RIGHTS, expires: Infinity }]);
const authenticate = (authorization: string | undefined) => keyring.authenticate(authorization);

function admissions(withKeys: boolean): Admissions {
  return new Admissions({
    readClient: createClientReader({ trusts, onWarning: (message) => assert.fail(message) }),
    authenticate: withKeys ? authenticate : null,
    rate: { policy: () => policy, limiter: createMemoryLimiter() },
    slots: createStreamSlots({ perClient: 64, total: 5000 }),
  });
}

function request(address: string, headers: Request['headers'] = {}): Request {
  return {
    method: 'GET',
    path: '/items',
    query: 'limit=50',
    headers: { host: 'localhost', accept: '*/*', ...headers },
    address,
    signal: new AbortController().signal,
    notes: newNotes(),
    body: () => Promise.resolve(new Uint8Array(0)),
  };
}

const ipv4 = (i: number) => [10, (i >> 16) & 255, (i >> 8) & 255, i & 255].join('.');
const ipv6 = (i: number) => `2001:db8:${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}::1`;
const spread = (make: (i: number) => Request) => Array.from({ length: CLIENTS }, (_, i) => make(i));

/** A candidate counts one request and returns the length of the text that describes the rate. */
type Candidate = (i: number) => number | Promise<number>;

function admitting(requests: readonly Request[], withKeys = false): Candidate {
  const subject = admissions(withKeys);
  return (i) => {
    const given = requests[i % requests.length];
    assert.ok(given);
    const admission = subject.admit(given, { access: 'keyed', cost: 'page' });
    assert.ok(!(admission instanceof Promise) && admission.refused === null);
    return (admission.headers.ratelimit ?? '').length;
  };
}

function rateAlone(): Candidate {
  const limiter = createMemoryLimiter();
  const names = Array.from({ length: CLIENTS }, (_, i) => ipv4(i));
  return (i) => (limitHeaders(policy, limiter.take(names[i % CLIENTS] ?? '', policy)).ratelimit ?? '').length;
}

function library(): Candidate {
  const limiter = new RateLimiterMemory({ points: policy.limit, duration: policy.windowSeconds });
  const names = Array.from({ length: CLIENTS }, (_, i) => ipv4(i));
  return async (i) => {
    const { remainingPoints, msBeforeNext } = await limiter.consume(names[i % CLIENTS] ?? '');
    const sent = limitHeaders(policy, {
      allowed: true,
      remaining: remainingPoints,
      resetSeconds: Math.ceil(msBeforeNext / 1000),
    });
    return (sent.ratelimit ?? '').length;
  };
}

/** `take` resolves with the number of requests left, which is the same for both candidates. */
async function takeMany(name: string, take: (client: string) => number | Promise<number>) {
  const before = process.memoryUsage.rss();
  let longest = 0;
  for (let i = 0; i < 100_000; i++) {
    const started = process.cpuUsage();
    const left = take(ipv4(i));
    assert.equal(typeof left === 'number' ? left : await left, policy.limit - 1);
    const { user, system } = process.cpuUsage(started);
    longest = Math.max(longest, (user + system) / 1000);
  }
  const megabytes = (process.memoryUsage.rss() - before) / 1e6;
  return `10^5 addresses: ${megabytes.toFixed(0)} MB of RSS, longest call ${longest.toFixed(0)} ms CPU: ${name}`;
}

const candidates: Record<string, Candidate> = {
  'rate alone': rateAlone(),
  'rate alone, rate-limiter-flexible': library(),
  'IPv4 client': admitting(spread((i) => request(ipv4(i)))),
  'IPv6 client': admitting(spread((i) => request(ipv6(i)))),
  'behind a trusted proxy': admitting(spread((i) => request('127.0.0.1', { 'x-forwarded-for': ipv4(i) }))),
  'with a key': admitting(
    spread((i) => request(ipv4(i), { authorization: `Bearer ${key}` })),
    true,
  ),
};

const own = createMemoryLimiter();
const memory = [
  await takeMany('src/access/limiter-memory.ts', (client) => own.take(client, policy).remaining),
];

for (const [name, candidate] of Object.entries(candidates)) {
  // The remaining number has nine or ten digits, and t has four: 2^30 requests are not reached here.
  assert.equal(await candidate(0), '"default";r=999999999;t=3600'.length, name);
}

console.log(
  `${cpus()[0]?.model ?? 'unknown CPU'}, Node ${process.version}, ${new Date().toISOString().slice(0, 10)}`,
);
const rounds = new Map<string, number[]>(Object.keys(candidates).map((name) => [name, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, candidate] of Object.entries(candidates)) {
    const started = process.cpuUsage();
    let length = 0;
    for (let i = 0; i < count; i++) {
      const size = candidate(i);
      length += typeof size === 'number' ? size : await size;
    }
    const { user, system } = process.cpuUsage(started);
    assert.equal(length, count * 28, name);
    rounds.get(name)?.push((user + system) / count);
  }
}
for (const [name, values] of rounds) console.log(`${median(values).toFixed(2).padStart(6)} µs CPU  ${name}`);

// This candidate comes last because its timers stay.
const theirs = new RateLimiterMemory({ points: policy.limit, duration: policy.windowSeconds });
memory.push(
  await takeMany('rate-limiter-flexible', async (client) => (await theirs.consume(client)).remainingPoints),
);
for (const line of memory) console.log(line);

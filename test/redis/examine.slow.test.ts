import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Finding } from '../../src/base/finding.ts';
import { examineRedis } from '../../src/redis/examine.ts';
import { freePort } from '../support/ports.ts';
import { testRedis } from '../support/redis/redis.ts';
import { testCluster, testSentinels } from '../support/redis/topologies.ts';

async function findingsOf(url: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  await examineRedis(url, (finding) => void findings.push(finding));
  return findings;
}

const WHOLE = [
  'INFO: 1 master answered',
  'INFO memory: maxmemory_policy is noeviction; noeviction is needed',
  'INFO replication: 1 master, 1 replica',
];
const PLACES: [name: string, open: (t: TestContext) => Promise<{ url: string } | null>, seen: string[]][] = [
  ['a server', testRedis, WHOLE.slice(0, 2)],
  ['a master with Sentinels', testSentinels, WHOLE],
  [
    'a Cluster',
    (t) => testCluster(t, 1),
    WHOLE.map((seen) => seen.replace('1 master', '3 masters').replace('1 replica', '3 replicas')),
  ],
];

for (const [name, open, seen] of PLACES)
  test(`${name} that answers keeps each promise, and another password is shown as refused`, async (t) => {
    const redis = await open(t);
    if (!redis) return;
    const findings = await findingsOf(redis.url);
    assert.deepEqual(
      findings.map((one) => one.seen),
      seen,
    );
    assert.ok(findings.every(({ holds }) => holds === true));
    if (name === 'a server') return;
    const refused = await findingsOf(redis.url.replace(/:p%40ss[^@]*@/, ':hunter2@'));
    assert.deepEqual(
      refused.map(({ holds }) => holds),
      [false],
    );
    assert.match(JSON.stringify(refused), /WRONGPASS|NOAUTH/);
    assert.doesNotMatch(JSON.stringify(refused), /hunter2/);
  });

test('a Cluster without replicas, and a server that drops keys, are warned of', async (t) => {
  const cluster = await testCluster(t, 0);
  const redis = await testRedis(t, ['--maxmemory-policy', 'allkeys-lru']);
  if (!cluster || !redis) return;
  const warned = async (url: string) => (await findingsOf(url)).filter(({ holds }) => holds === null);
  assert.match((await warned(cluster.url)).map(({ seen }) => seen).join(), /^INFO replication: 3 masters, 0/);
  assert.match((await warned(redis.url)).map(({ seen }) => seen).join(), /^INFO memory: .* allkeys-lru;/);
});

test('no Redis at all is a promise that does not hold', async () => {
  const place = `127.0.0.1:${await freePort()}`;
  for (const url of [`redis://${place}`, `redis+cluster://${place}`, `redis+sentinel://${place}/m`]) {
    const findings = await findingsOf(url);
    assert.deepEqual(
      findings.map(({ holds }) => holds),
      [false],
    );
    // A Cluster tells no more than that (ioredis drops the reason).
    assert.match(findings[0]?.seen ?? '', /ECONNREFUSED|Connection is closed/, url);
  }
});

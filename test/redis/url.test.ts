import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRedisUrl, redisUrlFaults } from '../../src/redis/url.ts';
import { masked } from '../../src/settings/masked.ts';

test('an invalid URL is a fault of the settings that does not show the URL', () => {
  const good = ['redis://localhost', 'rediss://user:p%40ss@host:6380/2', 'redis://:pw@[::1]:6379', undefined];
  for (const url of good) assert.deepEqual(redisUrlFaults(url), [], url);
  const bad = [
    'redis://:hunter2@[bad',
    'redis://:hunter2@a b',
    'redis://:hunter2%zz@h',
    'redis://:hunter2@/0',
  ];
  bad.push('redis://:hunter2@h:99999', 'http://:hunter2@h', 'hunter2', '', 'redis:hunter2', 'REDIS//h');
  for (const url of bad) {
    assert.match(redisUrlFaults(url).join(), /^REDIS_URL must begin with redis:/, url);
    assert.doesNotMatch(redisUrlFaults(url).join(), /hunter2/);
  }
});

test('a URL of a Cluster names nodes, and one of Sentinels names them, their master and two logins', () => {
  assert.deepEqual(readRedisUrl('rediss+cluster://ada:p%40%2C@a:1,b,[::1]:3/'), {
    kind: 'cluster',
    nodes: [
      { host: 'a', port: 1 },
      { host: 'b', port: 6379 },
      { host: '::1', port: 3 },
    ],
    login: { username: 'ada', password: 'p@,' },
    isTls: true,
  });
  assert.deepEqual(readRedisUrl('redis+sentinel://:p@a,b:2/my%20one/3?sentinel_password=x+%26'), {
    kind: 'sentinel',
    nodes: [
      { host: 'a', port: 26379 },
      { host: 'b', port: 2 },
    ],
    master: 'my one',
    database: 3,
    login: { password: 'p' },
    sentinelLogin: { password: 'x+&' },
    isTls: false,
  });
  const bare = readRedisUrl('redis+sentinel://a/m');
  assert.ok(bare?.kind === 'sentinel');
  assert.deepEqual([bare.database, bare.login, bare.sentinelLogin], [0, {}, {}]);
});

test('what is wrong with a URL of several hosts is said with its form, and without its passwords', () => {
  const cluster = ['a:1/2', 'a:1?x=1', '', ':hunter2@', 'a,,b', 'a:99999', ':hunter2%zz@a', 'a b'];
  const sentinel = ['a', 'a/', 'a/m/x', 'a,/m', 'a/m?password=hunter2', 'a/%zz', '/m', ':hunter2@a:x/m'];
  for (const [kind, rests] of Object.entries({ cluster, sentinel }))
    for (const rest of rests) {
      const faults = redisUrlFaults(`redis+${kind}://${rest}`);
      assert.equal(faults.length, 1, rest);
      assert.ok(faults[0]?.includes(`such as redis+${kind}://`), faults[0]);
      assert.doesNotMatch(faults.join(), /hunter2/);
    }
  assert.match(redisUrlFaults('redis://:hunter2@a:1,b:2').join(), /several hosts need redis\+cluster:/);
});

test('no password of a URL of several hosts is shown', () => {
  const url = 'rediss+sentinel://ada:hunter2@a:1,b:2/m/0?sentinel_username=bob&sentinel_password=hunter2';
  assert.equal(
    masked('REDIS_URL', url),
    'rediss+sentinel://ada:***@a:1,b:2/m/0?sentinel_username=bob&sentinel_password=***',
  );
  assert.equal(masked('REDIS_URL', 'redis+cluster://:hunter2@a,b'), 'redis+cluster://:***@a,b');
});

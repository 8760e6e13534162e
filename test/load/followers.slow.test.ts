import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noCounts } from '../../src/load/counts.ts';
import { Faults } from '../../src/load/faults.ts';
import { verdictOf } from '../../src/load/verdict.ts';
import { loading, type Loaded } from '../support/load/loading.ts';
import { SAMPLE } from '../support/load/sample.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';

const SHORT = ['--for', '1s', '--ramp', '0s'];

/** Two servers on one database: the first keeps its users there, the second shows them as a resource with changes. */
async function writerAndReader(t: Parameters<typeof serverOn>[0]): Promise<[TestServer, TestServer] | null> {
  const MONGODB_URI = await testMongo(t);
  if (MONGODB_URI === null) return null;
  const writer = await serverOn(t, { MONGODB_URI });
  const ada = `${writer.url}/api/users/ada`; // the first user makes the collection
  const headers = { 'content-type': 'application/json' };
  await fetch(ada, { method: 'PUT', headers, body: '{"name":"Ada","email":"ada@example.org"}' });
  await fetch(ada, { method: 'DELETE' });
  const reader = await serverOn(t, { MONGODB_URI, MONGODB_PREFIX: 'other_', EXPOSE: 'users' });
  return [writer, reader];
}

test('the delay of followers is measured from each write to its line, and the written user is removed', async (t) => {
  const servers = await writerAndReader(t);
  if (!servers) return;
  const [writer, reader] = servers;
  const users = `${writer.url}/api/users`;
  const words = [reader.url, '--followers', '5', '--follow', '/users', '--write', users, '--ramp', '0s'];
  const reachedIn = ({ result }: Loaded) => result?.followers?.reached ?? 0;
  let loaded = await loading([...words, '--for', '3s']);
  for (const time of ['15s', '60s'])
    // a slow machine may not write within three seconds
    if (reachedIn(loaded) < 5) loaded = await loading([...words, '--for', time]);
  const { code, result, said } = loaded;
  assert.ok(result?.followers);
  const { writes, failedWrites, missed, reached, open, lines } = result.followers;
  assert.deepEqual([code, failedWrites, missed, open], [0, 0, 0, 5], said);
  assert.ok(writes >= 1 && reached >= 5 && lines >= reached);
  const { delay } = result.latencies;
  assert.equal(delay.count, reached);
  assert.ok(delay.p50 !== null && delay.p50 > 0);
  assert.ok(result.series.some((second) => second.delay.p50 !== null));
  assert.match(said, /a write to its line: p50 [\d.]+, max/);
  assert.match(said, /\d writes, \d+ of their lines came, 0 were missed/);
  assert.deepEqual(await (await writer.get('/api/users')).json(), {
    data: [],
    page: { limit: 50, hasMore: false, nextCursor: null },
  });
});

test('the result reports writes that fail, with the reason', async (t) => {
  const reader = await serverOn(t, { MONGODB_URI: '' });
  const words = [reader.url, '--followers', '2', '--write', '/api/missing', ...SHORT];
  const { code, result } = await loading(words);
  assert.equal(code, 1);
  assert.ok((result?.followers?.failedWrites ?? 0) > 0);
  assert.match(result?.verdict.reasons.join() ?? '', /writes failed: the answer was 404/);
});

test('a run whose writes reach no follower is not valid', () => {
  const { series, target, options } = SAMPLE;
  const followers = {
    asked: 2,
    begun: 2,
    open: 2,
    cut: 0,
    refused: 0,
    lines: 0,
    heartbeats: 9,
    longestSilence: 9,
  };
  const judge = (missed: number, reached: number) =>
    verdictOf({
      counts: noCounts(),
      series,
      faults: new Faults(),
      target,
      options,
      failure: null,
      isInterrupted: false,
      followers: { ...followers, writes: 3, failedWrites: 0, missed, reached },
    }).reasons;
  assert.deepEqual(judge(6, 0), [
    'no line of 3 writes reached a follower: what is followed must be the users that --write writes',
  ]);
  assert.deepEqual(judge(1, 5), ['lines of writes missed by their followers: 1']);
  assert.deepEqual(judge(0, 6), []);
});

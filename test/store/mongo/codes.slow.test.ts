import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Db } from 'mongodb';
import { serverOn, type TestServer } from '../../support/process/server.ts';
import { testClient } from '../../support/store/mongo/mongo.ts';
import { impatient, ownMongod } from '../../support/store/mongo/mongod.ts';
import { oneOf, randomFrom } from '../../support/store/random-collection.ts';
import { SEED } from '../../support/seed.ts';

/** A fail point cannot make these: they have details of their own, which its error lacks, or they end the server. */
const NOT_MADE = [
  ...[65, 121, 169, 227, 236, 249, 271, 283, 284, 303, 304, 320, 330, 343, 346, 348, 351, 353, 354, 356],
  ...[359, 361, 372, 11000, 13388],
];
/** All numbers that named errors have (error_codes.yml of MongoDB 8), and those between them. */
const NAMED = [
  ...Array.from({ length: 420 }, (_, n) => n + 1),
  ...[8000, 9001, 10003, 10107, 10334, 11000, 11600, 11601, 11602, 12586, 12587, 13113, 13297, 13388],
  ...[13435, 13436, 14031],
].filter((code) => !NOT_MADE.includes(code));
/** Errors that refuse a command for what it says: our own mistake. Those from 15,000 on have no name. */
const OURS = [2, 9, 14, 22, 40, 52, 53, 56, 57, 72, 73];
const COMMANDS = [
  'find',
  'aggregate',
  'getMore',
  'count',
  'listIndexes',
  'listCollections',
  'explain',
  'ping',
];
const WRITES = ['insert', 'update', 'delete', 'createIndexes', 'killCursors'];
const BODY = JSON.stringify({ name: 'Ada', email: 'ada@example.org' });
const json = { 'content-type': 'application/json' };

const ROUTES: readonly (readonly [path: string, init?: RequestInit])[] = [
  ['/r?limit=3'],
  ['/r?limit=3&count=exact&s=s1'],
  ['/r/7'],
  ['/r/values?field=s&count=exact'],
  ['/r/stream'],
  ['/r/stream?consistency=snapshot'],
  ['/r/partitions?n=2'],
  ['/r/changes'],
  ['/r/changes?since=SINCE'],
  ['/changes?resources=r,r2&since=BOTH'],
  ['/api/users/a'],
  ['/api/users?limit=2'],
  ['/api/users/a', { method: 'PUT', body: BODY, headers: json }],
  ['/api/users/a', { method: 'DELETE' }],
  ['/exports'],
  ['/exports', { method: 'POST', body: JSON.stringify({ resource: 'r' }), headers: json }],
  ['/resources'],
  ['/readyz'],
];

for (const [way, query] of [
  ['the lane', ''],
  ['the driver', '&readPreference=secondaryPreferred&maxStalenessSeconds=120'],
] as const)
  test(`no code of MongoDB is an error of this server unless it refuses the command itself, read through ${way}`, async (t) => {
    const set = await ownMongod(t, { arguments: ['--setParameter', 'enableTestCommands=1'] });
    if (!set) return;
    const uri = impatient(set, 'codes');
    const db = testClient(t, uri).db();
    for (const name of ['r', 'r2']) {
      await db
        .collection<{ _id: number }>(name)
        .insertMany(Array.from({ length: 20 }, (_, _id) => ({ _id, s: `s${_id % 3}` })));
      await db.collection(name).createIndex({ s: 1, _id: 1 });
    }
    const server = await serverOn(t, {
      MONGODB_URI: `${uri}${query}&heartbeatFrequencyMS=500`,
      EXPOSE: 'r,r2',
      RATE_LIMIT: 'off',
      EXPORT_LIMIT: '1000',
    });
    const cursors = await cursorsOf(server, db);
    const random = randomFrom(SEED);
    const faults: string[] = [];
    for (const code of [...NAMED, 15_001, 51_173, 5_000_001]) {
      const writes = random() < 0.3 ? WRITES : [];
      const failCommands = [...(random() < 0.5 ? COMMANDS : [oneOf(random, COMMANDS)]), ...writes];
      const isForLong = random() < 0.7;
      await failing(db, code, failCommands, isForLong ? 'alwaysOn' : { times: 3 });
      // Changes since a cursor are tried again for half a minute.
      const routes = ROUTES.filter(([path]) => !isForLong || !path.includes('since='));
      for (const [path, init] of [oneOf(random, routes), oneOf(random, routes)]) {
        const asked = path.replace('SINCE', cursors.one).replace('BOTH', cursors.both);
        const fault = await faultOf(server, asked, init, { code, isForLong });
        if (fault !== null)
          faults.push(`${code} of ${failCommands.join()}: ${init?.method ?? 'GET'} ${path}: ${fault}`);
      }
    }
    await db.admin().command({ configureFailPoint: 'failCommand', mode: 'off' });
    assert.deepEqual(faults, [], `seed ${SEED}`);
  });

/** Cursors of changes behind which there are some. */
async function cursorsOf(server: TestServer, db: Db) {
  const at = async (path: string) =>
    /"cursor":"([^"]+)"/.exec(await (await server.get(path)).text())?.[1] ?? assert.fail(path);
  const cursors = { one: await at('/r/changes'), both: await at('/changes?resources=r,r2') };
  for (const name of ['r', 'r2']) await db.collection(name).updateMany({}, { $set: { changed: true } });
  return cursors;
}

function failing(db: Db, errorCode: number, failCommands: readonly string[], mode: object | string) {
  const data = { failCommands, errorCode, appName: 'sluice' };
  return db.admin().command({ configureFailPoint: 'failCommand', mode, data });
}

/** What is wrong with an answer while commands fail with this code. Null: nothing is. */
async function faultOf(
  server: TestServer,
  path: string,
  init: RequestInit | undefined,
  { code, isForLong }: { readonly code: number; readonly isForLong: boolean },
): Promise<string | null> {
  const response = await fetch(server.url + path, init ?? {});
  const { status, headers } = response;
  const isOurs = OURS.includes(code) || code > 15_000;
  // A stream that has begun tries again for long, so its end is not waited for.
  if (status === 200 && isForLong) return (await response.body?.cancel()) ?? null;
  const text = await response.text();
  if (status === 503) return headers.get('retry-after') === null ? 'no Retry-After' : null;
  if (status !== 500 && !text.includes('"code":"internal"')) return null;
  return isOurs && path !== '/readyz' ? null : `${status} ${text.slice(0, 200)}`;
}

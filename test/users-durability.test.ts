import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { User } from '../src/users/user.ts';
import { childServer } from './support/child-server.ts';
import { testDirectory } from './support/lmdb.ts';
import { ownMongod, withDatabase } from './support/mongod.ts';
import { serverOn } from './support/server.ts';
import { PATH, usersAt, type Users } from './support/users.ts';

const LMDB_KILLS = process.env.LONG ? 20 : 1;
const MONGOD_KILLS = process.env.LONG ? 20 : 1;
const WRITERS = 1000;

/** What a writer knows of its user: the last version acknowledged, and the last one sent. */
interface Known {
  acknowledged: number;
  sent: number;
}

/**
 * Each writer puts one version of its user after the other until the server is gone; `kill` is called once so many were
 * acknowledged, while nearly all the others are under way.
 */
async function writeUntilGone(
  users: Users,
  known: Known[],
  killAfter: number,
  kill: () => unknown,
): Promise<void> {
  let acknowledged = 0;
  await Promise.all(
    known.map(async (writer, n) => {
      for (;;) {
        const version = ++writer.sent;
        let status: number;
        try {
          ({ status } = await users.send('PUT', `${PATH}/w${n}`, { body: bodyOf(n, version) }));
        } catch (error) {
          assert.ok(error instanceof TypeError, String(error)); // fetch: the connection is gone
          return;
        }
        if (status === 503) return; // the store is gone: the write may or may not have been made
        assert.ok(status === 200 || status === 201, `got ${status}`);
        writer.acknowledged = version;
        if (++acknowledged === killAfter) await kill();
      }
    }),
  );
  assert.ok(acknowledged >= killAfter);
}

const bodyOf = (writer: number, version: number) => ({
  name: `version ${version}`,
  email: `w${writer}@example.org`,
  metadata: { version: String(version) },
});

/** Each user is a version that was sent, whole, and none older than the last acknowledged. */
async function checkAll(users: Users, known: readonly Known[]): Promise<void> {
  const stored = new Map<string, User>();
  for (let next: string | null = ''; next !== null;) {
    const answer = await users.send('GET', `${PATH}?limit=1000${next && `&cursor=${next}`}`);
    assert.equal(answer.status, 200, answer.text);
    const { data, page } = answer.json as { data: User[]; page: { hasMore: boolean; nextCursor: string } };
    for (const user of data) stored.set(user.id, user);
    next = page.hasMore ? page.nextCursor : null;
  }
  for (const [n, { acknowledged, sent }] of known.entries()) {
    const user = stored.get(`w${n}`);
    if (!user) {
      assert.equal(acknowledged, 0, `w${n} was acknowledged, but is lost`);
      continue;
    }
    const version = Number(user.metadata?.version);
    assert.ok(version >= acknowledged && version <= sent, `w${n}: ${acknowledged} <= ${version} <= ${sent}`);
    const { name, email, metadata } = user;
    assert.deepEqual({ name, email, metadata }, bodyOf(n, version), 'whole');
  }
}

const newWriters = (): Known[] => Array.from({ length: WRITERS }, () => ({ acknowledged: 0, sent: 0 }));

test(`after ${LMDB_KILLS} kill -9 of a server under ${WRITERS} writers every acknowledged user is there`, async (t) => {
  const settings = { DATA_DIR: await testDirectory(t), MONGODB_URI: '', RATE_LIMIT: 'off' };
  const known = newWriters();
  for (let kill = 1; kill <= LMDB_KILLS; kill++) {
    const server = await childServer(t, settings);
    const users = usersAt(server.url.origin);
    await checkAll(users, known);
    await writeUntilGone(users, known, 300 * kill, () => process.kill(server.pid, 'SIGKILL'));
  }
  const { url } = await childServer(t, settings);
  await checkAll(usersAt(url.origin), known);
  t.diagnostic(`${known.reduce((sum, { acknowledged }) => sum + acknowledged, 0)} versions acknowledged`);
});

test(`after ${MONGOD_KILLS} kill -9 of mongod under ${WRITERS} writers every acknowledged user is there`, async (t) => {
  const mongod = await ownMongod(t);
  const member = mongod?.members[0];
  if (!mongod || !member) return;
  const known = newWriters();
  const server = await serverOn(t, { MONGODB_URI: withDatabase(mongod.uri, 'shop'), RATE_LIMIT: 'off' });
  const users = usersAt(server.url);
  for (let kill = 1; kill <= MONGOD_KILLS; kill++) {
    await writeUntilGone(users, known, 300 * kill, () => member.kill());
    await member.start();
    await untilWritable(users);
    await checkAll(users, known);
  }
  t.diagnostic(`${known.reduce((sum, { acknowledged }) => sum + acknowledged, 0)} versions acknowledged`);
});

/** Each try waits for the database by itself. */
async function untilWritable(users: Users): Promise<void> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const { status, text } = await users.send('PUT', `${PATH}/probe`, {
      body: { name: 'probe', email: 'a@b' },
    });
    if (status < 300) return;
    assert.equal(status, 503, text);
    assert.ok(Date.now() < deadline, 'mongod is back, but not writable');
  }
}

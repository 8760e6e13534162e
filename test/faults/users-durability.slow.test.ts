import assert from 'node:assert/strict';
import { test } from 'node:test';
import { childServer } from '../support/process/child-server.ts';
import { testDirectory } from '../support/store/sqlite/sqlite.ts';
import { ownMongod, withDatabase } from '../support/store/mongo/mongod.ts';
import { serverOn } from '../support/process/server.ts';
import { bodyOf, checkAll, newWriters, type Known } from '../support/users/user-writers.ts';
import { PATH, usersAt, type Users } from '../support/users/users.ts';

const KILLS = process.env.LONG ? 200 : 1;
/** The number of servers that are killed side by side. Most of the time is spent waiting for restarts. */
const LANES = process.env.LONG ? 5 : 1;
const WRITERS = 200;
/** The most acknowledged writes before a lane's kill. The number varies. */
const MOST_WRITES = 1_000;

/**
 * Each writer puts one version of its user after the other until the server is gone. `kill` is called once, after
 * this number of acknowledgements, while nearly all other writes are running.
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
        if (status === 503) return; // the store is gone, and the write may or may not have been made
        assert.ok(status === 200 || status === 201, `got ${status}`);
        writer.acknowledged = version;
        if (++acknowledged === killAfter) await kill();
      }
    }),
  );
  assert.ok(acknowledged >= killAfter);
}

/** The acknowledged writes before a lane's `kill`-th kill: up to MOST_WRITES, and different each time. */
const killAfter = (kill: number) => 1 + ((kill * 389) % MOST_WRITES);

/** Runs the lanes, each with its share of the kills. Returns the number of acknowledged versions. */
async function inLanes(run: (kills: number) => Promise<readonly Known[]>): Promise<number> {
  const lanes = await Promise.all(Array.from({ length: LANES }, () => run(KILLS / LANES)));
  return lanes.flat().reduce((sum, { acknowledged }) => sum + acknowledged, 0);
}

test(`after ${KILLS} kill -9 of a server under ${WRITERS} writers every acknowledged user is there`, async (t) => {
  const acknowledged = await inLanes(async (kills) => {
    const settings = { DATA_DIR: await testDirectory(t), MONGODB_URI: '', RATE_LIMIT: 'off' };
    const known = newWriters(WRITERS);
    for (let kill = 1; kill <= kills; kill++) {
      const server = await childServer(t, settings);
      const users = usersAt(server.url.origin);
      await checkAll(users, known);
      await writeUntilGone(users, known, killAfter(kill), () => process.kill(server.pid, 'SIGKILL'));
    }
    const { url } = await childServer(t, settings);
    await checkAll(usersAt(url.origin), known);
    return known;
  });
  t.diagnostic(`${acknowledged} versions acknowledged`);
});

test(`after ${KILLS} kill -9 of mongod under ${WRITERS} writers every acknowledged user is there`, async (t) => {
  const acknowledged = await inLanes(async (kills) => {
    const known = newWriters(WRITERS);
    const mongod = await ownMongod(t);
    const member = mongod?.members[0];
    if (!mongod || !member) return known;
    const server = await serverOn(t, { MONGODB_URI: withDatabase(mongod.uri, 'shop'), RATE_LIMIT: 'off' });
    const users = usersAt(server.url);
    for (let kill = 1; kill <= kills; kill++) {
      await writeUntilGone(users, known, killAfter(kill), () => member.kill());
      await member.start();
      await untilWritable(users);
      await checkAll(users, known);
    }
    return known;
  });
  t.diagnostic(`${acknowledged} versions acknowledged`);
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

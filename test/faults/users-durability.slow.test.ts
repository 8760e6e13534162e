import assert from 'node:assert/strict';
import { test } from 'node:test';
import { impatient, ownMongod } from '../support/store/mongo/mongod.ts';
import { serverOn } from '../support/process/server.ts';
import { bodyOf, checkAll, newWriters, type Known } from '../support/users/user-writers.ts';
import { PATH, usersAt, type Users } from '../support/users/users.ts';

const KILLS = process.env.LONG ? 200 : 1;
const WRITERS = 200;
/** The most acknowledged writes before a kill. The number varies. */
const MOST_WRITES = 1_000;

/**
 * Each writer puts one version of its user after the other until the database is gone. `kill` is called once, after
 * this number of acknowledgements, while nearly all other writes are running.
 */
async function writeUntilGone(
  users: Users,
  known: Known[],
  killAfter: number,
  kill: () => Promise<void>,
): Promise<void> {
  let acknowledged = 0;
  await Promise.all(
    known.map(async (writer, n) => {
      for (;;) {
        const version = ++writer.sent;
        const { status } = await users.send('PUT', `${PATH}/w${n}`, { body: bodyOf(n, version) });
        if (status === 503) return; // the write may or may not have been made
        assert.ok(status === 200 || status === 201, `got ${status}`);
        writer.acknowledged = version;
        if (++acknowledged === killAfter) await kill();
      }
    }),
  );
  assert.ok(acknowledged >= killAfter);
}

test(`after ${KILLS} kill -9 of mongod under ${WRITERS} writers every acknowledged user is there`, async (t) => {
  const mongod = await ownMongod(t);
  const member = mongod?.members[0];
  if (!mongod || !member) return;
  const server = await serverOn(t, { MONGODB_URI: impatient(mongod, 'shop'), RATE_LIMIT: 'off' });
  const users = usersAt(server.url);
  const known = newWriters(WRITERS);
  for (let kill = 1; kill <= KILLS; kill++) {
    await writeUntilGone(users, known, 1 + ((kill * 389) % MOST_WRITES), () => member.kill());
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

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Document } from 'mongodb';
import { childServer } from '../../support/process/child-server.ts';
import { ownMongod } from '../../support/store/mongo/mongod.ts';
import type { Member } from '../../support/store/mongo/replica-set.ts';
import { PATH, usersAt, type Users } from '../../support/users/users.ts';

/** Replies of a member that ends or changes its role. The driver drops the member until a heartbeat succeeds. */
const CODES = [91, 189, 10107, 11600, 11602, 13435, 13436];
/** How many failed finds and heartbeats a member gives before it answers again. */
const FAILURES = process.env.LONG ? 6 : 3;
const BODY = { name: 'Ada', email: 'ada@example.org' };

const put = (users: Users, id: string) => users.send('PUT', `${PATH}/${id}`, { body: BODY });

/** Asks until an answer is good. Every other answer must say that the store does not respond. */
async function untilGood(ask: () => Promise<{ readonly status: number }>): Promise<void> {
  for (;;) {
    const { status } = await ask();
    if (status < 300) return;
    assert.equal(status, 503);
  }
}

/** Makes reads and heartbeats of the server fail with this code. Resolves when some have failed. */
async function failReplies(
  member: Member,
  errorCode: number,
  meanwhile: () => Promise<unknown>,
): Promise<void> {
  await member.admin(async (client) => {
    const admin = client.db('admin');
    const set = (mode: string, data?: Document) =>
      admin.command({ configureFailPoint: 'failCommand', mode, ...(data && { data }) });
    const data = { failCommands: ['find', 'hello'], errorCode, appName: 'sluice' };
    const { count } = (await set('alwaysOn', data)) as unknown as { readonly count: number };
    const wait = { waitForFailPoint: 'failCommand', timesEntered: count + FAILURES, maxTimeMS: 60_000 };
    const over = new AbortController();
    const failed = admin.command(wait).finally(() => over.abort());
    while (!over.signal.aborted) await meanwhile();
    await failed;
    await set('off');
  });
}

test('replies of a member that ends or changes its role do not end the server', async (t) => {
  const set = await ownMongod(t, { arguments: ['--setParameter', 'enableTestCommands=1'] });
  const [member] = set?.members ?? [];
  if (!set || !member) return;
  const server = await childServer(t, { MONGODB_URI: `${set.uri}&heartbeatFrequencyMS=500` });
  const users = usersAt(server.url.origin);
  await untilGood(() => put(users, 'a'));
  for (const code of CODES) {
    await failReplies(member, code, async () => {
      for (const { status } of [await put(users, 'a'), await users.send('GET', `${PATH}/a`)])
        assert.ok(status < 300 || status === 503, `${code}: ${status}`);
    });
    await untilGood(() => put(users, 'a'));
  }
});

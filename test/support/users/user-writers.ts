import assert from 'node:assert/strict';
import type { User } from '../../../src/users/user.ts';
import { PATH, type Users } from './users.ts';

/** The state that a writer knows of its user: the last version acknowledged, and the last one sent. */
export interface Known {
  acknowledged: number;
  sent: number;
}

export const newWriters = (count: number): Known[] =>
  Array.from({ length: count }, () => ({ acknowledged: 0, sent: 0 }));

/** The body of one version of a writer's user. */
export const bodyOf = (writer: number, version: number) => ({
  name: `version ${version}`,
  email: `w${writer}@example.org`,
  metadata: { version: String(version) },
});

/**
 * Checks that each user is a complete version that was sent, and not older than the last acknowledged one.
 */
export async function checkAll(users: Users, known: readonly Known[]): Promise<void> {
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

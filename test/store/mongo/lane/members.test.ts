import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LaneBroken } from '../../../../src/store/mongo/lane/message.ts';
import { Members, type ReadMode } from '../../../../src/store/mongo/lane/members.ts';
import { Pool } from '../../../../src/store/mongo/lane/pool.ts';
import { NEVER } from '../../../support/store/reading.ts';

const NEAR = 1;
const FAR = 50;
const P = 'RSPrimary';
const S = 'RSSecondary';
const U = 'Unknown';
const A = 'RSArbiter';
type Seen = readonly [type: string | undefined, roundTripMs: number];

/** Members in this state, called 0, 1, ..., and the member of the chosen pool. */
function seen(mode: ReadMode, servers: readonly Seen[], type = 'ReplicaSetWithPrimary') {
  const names = new Map<Pool, string>();
  const members = new Members(mode, 15, (address) => {
    const pool = new Pool({
      open: () => new Promise(() => undefined),
      size: 1,
      waitMs: 1_000,
      onRefusal: () => undefined,
    });
    names.set(pool, address);
    return pool;
  });
  const update = (next: readonly Seen[]) => {
    const described = next.map(
      ([kind = U, roundTripTime], n) => [String(n), { type: kind, roundTripTime }] as const,
    );
    members.update({
      type,
      servers: new Map(described as [string, { type: string; roundTripTime: number }][]),
    });
  };
  update(servers);
  const chosen = () => {
    const pool = members.choose();
    return pool && names.get(pool);
  };
  return { members, update, chosen };
}

const CHOICES: readonly (readonly [ReadMode, readonly Seen[], expected: string | null])[] = [
  ['primary', [[S, NEAR], [P, FAR]], '1'],
  ['primary', [[S, NEAR], [U, NEAR]], null],
  ['primaryPreferred', [[S, NEAR], [P, FAR]], '1'],
  ['primaryPreferred', [[U, NEAR], [S, FAR]], '1'],
  ['primaryPreferred', [[S, FAR], [S, NEAR]], '1'],
  ['secondary', [[P, NEAR], [S, FAR]], '1'],
  ['secondary', [[P, NEAR], [A, NEAR]], null],
  ['secondaryPreferred', [[P, NEAR], [S, FAR]], '1'],
  ['secondaryPreferred', [[P, NEAR], [U, FAR]], '0'],
  ['nearest', [[P, FAR], [S, NEAR]], '1'],
  ['nearest', [[P, NEAR], [S, FAR]], '0'],
  ['nearest', [], null],
]; // prettier-ignore

for (const [mode, servers, expected] of CHOICES)
  test(`${mode} of ${servers.map(([type, ms]) => `${type} at ${ms} ms`).join(', ') || 'none'}: ${expected}`, () => {
    assert.equal(seen(mode, servers).chosen(), expected);
  });

test('a direct connection reads from any kind of member, and a sharded cluster is not read by the lane', () => {
  assert.equal(seen('primary', [[S, NEAR]], 'Single').chosen(), '0');
  assert.equal(seen('primary', [['Standalone', NEAR]], 'Single').chosen(), '0');
  const sharded = seen('nearest', [['Mongos', NEAR]], 'Sharded');
  assert.equal(sharded.chosen(), null);
  assert.equal(sharded.members.areSharded, true);
});

test('the less busy of equally near members is asked', async () => {
  const { members, chosen } = seen('secondary', [[S, NEAR], [S, NEAR]]); // prettier-ignore
  const pool = members.choose();
  const first = chosen();
  const waiting = pool?.take(NEVER);
  assert.notEqual(chosen(), first);
  members.close();
  await assert.rejects(Promise.resolve(waiting), LaneBroken);
});

test('a member that refuses connections is left to the driver for a while, and its waiting reads are rejected', async () => {
  const refused = new LaneBroken('refused');
  const open = (onEnd: () => void) => {
    setImmediate(onEnd); // its socket closes a little later
    return Promise.reject(refused);
  };
  const refusals: unknown[] = [];
  const onRefusal = (error: unknown) => {
    refusals.push(error);
  };
  const pool = new Pool({ open, size: 1, waitMs: 1_000, onRefusal });
  assert.equal(pool.isResting, false);
  const takers = [pool.take(NEVER), pool.take(NEVER)];
  for (const taker of takers) await assert.rejects(Promise.resolve(taker), refused);
  assert.equal(pool.isResting, true);
  assert.deepEqual(refusals, [refused]);
  assert.equal(pool.load, 0);
});

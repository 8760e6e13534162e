import assert from 'node:assert/strict';
import { EXPORTS } from '../../src/exports/jobs.ts';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { BSON, Int32, ObjectId } from '../../src/store/values/bson.ts';
import type { Change, Records } from '../../src/store/records.ts';
import type { Plan } from '../../src/store/store.ts';
import { fromRow, toRow, USERS, type StoredUser } from '../../src/users/row.ts';
import { NEVER, PLENTY, takeRows, walk } from '../support/store/reading.ts';
import type { StoreTest } from '../support/store/open-store.ts';
import { readRow } from '../../src/store/turns/read-row.ts';

const BY_ID: Plan = { sort: '_id', direction: 1 };
const TIME = new Date('2026-01-02T03:04:05.678Z');

export function user(_id: string, name: string, metadata?: StoredUser['metadata']): StoredUser {
  return { _id, name, email: 'a@b', ...(metadata && { metadata }), createdAt: TIME, updatedAt: TIME };
}

/** Sets a user to a fixed state. */
const put = (users: Records, wanted: StoredUser) => users.change(wanted._id, () => toRow(wanted));

async function getUser(users: Records, id: unknown): Promise<StoredUser | null> {
  const batch = await readRow(users, makeBookmark({ _id: id }), NEVER);
  const [row] = batch ? takeRows(batch) : [];
  return row ? fromRow(row) : null;
}

/** Increments the number in the user's name. */
export const countUp: Change = (current) => {
  if (!current) return toRow(user('counter', '1'));
  const before = fromRow(current);
  return toRow({ ...before, name: String(Number(before.name) + 1) });
};

/** Every promise of Records in src/store/records.ts, tested on one implementation. */
export function userStoreContract(test: StoreTest): void {
  test('a change creates, replaces, keeps and removes, and returns the documents before and after', async (opened) => {
    const users = await opened.store.records(USERS);
    const first = toRow(user('a', 'Ada'));
    const second = toRow(user('a', 'Ada', { odd: 'yes' }));
    const seen: (Uint8Array | null)[] = [];
    const becomes = (after: ReturnType<Change>) =>
      users.change('a', (current) => {
        seen.push(current);
        return after;
      });
    assert.deepEqual(hex(await becomes(null)), { before: null, after: null });
    assert.deepEqual(hex(await becomes('keep')), { before: null, after: null });
    assert.deepEqual(hex(await becomes(first)), hex({ before: null, after: first }));
    assert.deepEqual(hex(await becomes('keep')), hex({ before: first, after: first }));
    assert.deepEqual(hex(await becomes(second)), hex({ before: first, after: second }));
    assert.deepEqual(await getUser(users, 'a'), fromRow(second));
    assert.deepEqual(hex(await becomes(null)), hex({ before: second, after: null }));
    assert.equal(await getUser(users, 'a'), null);
    assert.deepEqual(
      seen.map((bytes) => bytes && fromRow(bytes).metadata),
      [null, null, null, undefined, undefined, { odd: 'yes' }],
    );
    for (const id of ['b', new Int32(1), new ObjectId()]) assert.equal(await getUser(users, id), null);
    assert.equal(opened.slots.taken, 0);
  });

  test('an error that a change throws is passed on, and nothing is changed', async (opened) => {
    const users = await opened.store.records(USERS);
    await put(users, user('a', 'Ada'));
    const refusals = Array.from({ length: 20 }, (_, n) => new Error(`refusal ${n}`));
    const results = await Promise.allSettled(
      refusals.flatMap((refusal, n) => [
        users.change('a', () => {
          throw refusal;
        }),
        put(users, user(`b${n}`, 'Bob')),
      ]),
    );
    results.forEach((result, n) => {
      if (n % 2 === 1) assert.equal(result.status, 'fulfilled');
      else assert.equal(result.status === 'rejected' && result.reason, refusals[n / 2]);
    });
    assert.deepEqual(await getUser(users, 'a'), user('a', 'Ada'));
    assert.deepEqual(await getUser(users, 'b19'), user('b19', 'Bob'));
  });

  test('of concurrent changes to one user none is lost, and each starts from the previous one', async (opened) => {
    const users = await opened.store.records(USERS);
    const changes = await Promise.all(Array.from({ length: 40 }, () => users.change('counter', countUp)));
    const steps = changes.map(({ before, after }) => [nameOf(before), nameOf(after)]);
    steps.sort((a, b) => Number(a[1]) - Number(b[1]));
    assert.deepEqual(
      steps,
      steps.map((_, n) => [n === 0 ? null : String(n), String(n + 1)]),
    );
    assert.equal((await getUser(users, 'counter'))?.name, '40');
  });

  test('of concurrent creators of one user exactly one finds none', async (opened) => {
    const users = await opened.store.records(USERS);
    const created = await Promise.allSettled(
      Array.from({ length: 30 }, (_, n) =>
        users.change('a', (current) => {
          if (current) throw new Error('taken');
          return toRow(user('a', String(n)));
        }),
      ),
    );
    const [winner, ...others] = created.filter((result) => result.status === 'fulfilled');
    assert.deepEqual(others, []);
    assert.equal((await getUser(users, 'a'))?.name, nameOf(winner?.value.after ?? null));
  });

  test('users are read by an index, counted and confirmed as any rows are', async (opened) => {
    const users = await opened.store.records(USERS);
    const { index, isNew } = await users.addIndex(['metadata.team', 'name'], () => undefined, NEVER);
    assert.deepEqual([index.refused, isNew], [undefined, true]);
    const made = Array.from({ length: 40 }, (_, n) =>
      user(`u${n}`, String(n % 7), { team: n % 3 ? 'red' : 'blue' }),
    );
    await Promise.all(made.map((one) => put(users, one)));
    await put(users, user('none', '1'));
    const found = (await users.describe(NEVER)).indexes.find((one) => one.name === index.name);
    assert.ok(found);
    const plan: Plan = {
      index: found,
      equals: [{ path: 'metadata.team', value: 'blue' }],
      sort: 'name',
      direction: -1,
    };
    const wanted = made.filter(({ metadata }) => metadata?.team === 'blue');
    wanted.sort((a, b) => Number(b.name) - Number(a.name) || (a._id < b._id ? 1 : -1));
    assert.deepEqual(
      (await walk(users, plan, 5)).map((row) => fromRow(row)._id),
      wanted.map(({ _id }) => _id),
    );
    assert.deepEqual(await users.count(plan, 'exact', NEVER), { rows: wanted.length, is: 'exact' });
    assert.equal((await users.count(BY_ID, 'exact', NEVER)).rows, 41);
    assert.match((await users.describe(NEVER)).identity ?? '', /^[0-9a-f]{32}$/);
    assert.equal(opened.slots.taken, 0);
  });

  test('before their first change there are no exports, whatever is asked', async (opened) => {
    const exports = await opened.store.records(EXPORTS);
    const batch = await exports.read(BY_ID, {}, { rows: 5, bytes: PLENTY }, NEVER);
    assert.deepEqual([batch.rows, batch.more, batch.last], [0, false, null]);
    const own: Plan = { sort: 'createdAt', direction: -1, equals: [{ path: 'client', value: 'ada' }] };
    const row = BSON.serialize({
      _id: 'a',
      state: 'queued',
      request: {},
      createdAt: new Date(0),
      client: 'ada',
    });
    const none = await exports.read(own, {}, { rows: 5, bytes: PLENTY }, NEVER);
    assert.equal(await readRow(exports, makeBookmark({ _id: 'a' }), NEVER), null);
    assert.deepEqual(await exports.count(own, 'exact', NEVER), { rows: 0, is: 'exact' });
    assert.deepEqual(await exports.split(BY_ID, 3, NEVER), []);
    await exports.change('a', () => row);
    for (const one of [batch, none]) {
      await one.confirm(NEVER); // it was whole when it was read
      one.release();
    }
    assert.deepEqual(
      takeRows(await exports.read(own, {}, { rows: 5, bytes: PLENTY }, NEVER)).map((bytes) => [...bytes]),
      [[...row]],
    );
    assert.equal(opened.slots.taken, 0);
  });

  test('names of metadata mean nothing, however they look', async (opened) => {
    const users = await opened.store.records(USERS);
    const names = [...'1 a.b constructor prototype toJSON toBSON length \n ä𝄞 _id'.split(' '), ''];
    const odd = user('odd', '$where', Object.fromEntries(names.map((key) => [key, `$${key}`])));
    await put(users, odd);
    assert.deepEqual(await getUser(users, 'odd'), odd);
    const { before } = await users.change('odd', (current) => {
      assert.ok(current);
      return toRow({ ...fromRow(current), name: 'again' });
    });
    assert.deepEqual(before && fromRow(before), odd);
    assert.deepEqual(await getUser(users, 'odd'), { ...odd, name: 'again' });
    await users.change('odd', () => null);
    assert.equal(await getUser(users, 'odd'), null);
  });
}

function nameOf(row: Uint8Array | null): string | null {
  return row && fromRow(row).name;
}

function hex({ before, after }: { before: Uint8Array | null; after: Uint8Array | null }) {
  const text = (bytes: Uint8Array | null) => bytes && Buffer.from(bytes).toString('hex');
  return { before: text(before), after: text(after) };
}

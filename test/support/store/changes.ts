import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Document, MongoClient } from 'mongodb';
import { AppError } from '../../../src/base/errors.ts';
import type { Bookmark } from '../../../src/store/bookmark.ts';
import type { ChangeFeed, FeedPlace, RowsByKey } from '../../../src/store/change-feed.ts';
import type { Plan, Collection } from '../../../src/store/store.ts';
import { lookUps } from '../../../src/store/turns/readers.ts';
import { NEVER, PLENTY, takeRows } from './reading.ts';

/** All rows in the order of the key. */
export const BY_ID: Plan = { sort: '_id', direction: 1 };

export function feedOf({ changes }: Collection): ChangeFeed {
  assert.ok(changes, 'these rows have a change feed');
  return changes;
}

/** Every key from a place on, in pieces of `most` keys, and how many the longest has. */
export async function keysSince(feed: ChangeFeed, place: FeedPlace, most = 1_000) {
  const keys: Bookmark[] = [];
  let longest = 0;
  let at = place;
  for (let pieces = 1; ; pieces++) {
    const read = await feed.read(at, { most, waitMs: 0 }, undefined, NEVER);
    assert.ok(read.next.token.length < 1_100, `a place of ${read.next.token.length} bytes`);
    keys.push(...read.keys);
    longest = Math.max(longest, read.keys.length);
    at = read.next;
    if (read.isUpToDate) return { keys, place: at, pieces, longest };
    assert.ok(pieces < 10_000, 'the feed comes to its end');
  }
}

/** The documents of the rows of keys. `found`: see ChangeFeed.lookUp. */
export async function lookUp(
  feed: ChangeFeed,
  keys: readonly Bookmark[],
  plan: Plan = BY_ID,
  size = { rows: 1_000, bytes: PLENTY },
  found?: RowsByKey,
): Promise<readonly Buffer[]> {
  const rows: Buffer[] = [];
  for await (const batch of lookUps(keys, plan, (rest, bound) =>
    feed.lookUp(rest, bound, size, NEVER, found),
  ))
    rows.push(...takeRows(batch));
  return rows;
}

export function isProblem(code: string) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof AppError, String(error));
    assert.equal(error.code, code);
    return true;
  };
}

/** The change streams of a database that the server keeps open, also those that wait for events at this moment. */
export async function openStreams(client: MongoClient): Promise<readonly Document[]> {
  // While such a cursor is read, its namespace is DATABASE.$cmd.
  const ns = { $in: ['$cmd', '$cmd.aggregate'].map((name) => `${client.db().databaseName}.${name}`) };
  const found = await client
    .db('admin')
    .aggregate([{ $currentOp: { idleCursors: true, allUsers: true } }, { $match: { ns } }])
    .toArray();
  return found.filter(({ cursor }) => cursor !== undefined);
}

/** Polls until a condition holds. Fails after 20 s. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 20_000;
  while (!(await holds())) {
    assert.ok(performance.now() < end, `in time: ${what}`);
    await pause(10);
  }
}

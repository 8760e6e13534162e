import assert from 'node:assert/strict';
import { bookmarkOf, type Bookmark } from '../../../src/store/bookmark.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import type { ChangeFeed, FeedPlace } from '../../../src/store/change-feed.ts';
import { compareValues } from '../../../src/store/values/order.ts';
import type { Plan, Collection } from '../../../src/store/store.ts';
import { lookUp } from './changes.ts';
import { below, type Random } from './random-collection.ts';
import { NEVER, PLENTY, takeRows } from './reading.ts';

const BY_ID = { sort: '_id' } as const;

/** The name of a row in a copy: the exact bytes of its `_id`, so 7 and 7.0 are two. */
export function nameOf(row: Uint8Array): string {
  return Buffer.from(bookmarkOf(row, BY_ID)).toString('hex');
}

export function idIn(row: Uint8Array): unknown {
  return (BSON.deserialize(row, { promoteValues: false, promoteBuffers: false }) as { _id: unknown })._id;
}

/**
 * A client that keeps a copy of a set: it walks the rows in order of id, and applies the changes between the pieces. A
 * row beyond its place is left out, because the walk will meet it. A removal is always applied.
 */
export class Follower {
  readonly copy = new Map<string, Buffer>();
  isWalking = true;
  readonly #store: Collection;
  readonly #feed: ChangeFeed;
  readonly #plan: Plan;
  readonly #random: Random;
  #place: FeedPlace;
  /** The last row of the walk. Null: before the first row. */
  #walked: Bookmark | null = null;

  private constructor(store: Collection, plan: Plan, random: Random, feed: ChangeFeed, place: FeedPlace) {
    this.#store = store;
    this.#feed = feed;
    this.#plan = plan;
    this.#random = random;
    this.#place = place;
  }

  /** Begins with an empty copy. */
  static async begin(store: Collection, plan: Plan, random: Random): Promise<Follower> {
    const feed = store.changes;
    if (!feed) throw new Error('the store has no change feed');
    const place = await feed.now(NEVER);
    const { identity } = await store.describe(NEVER);
    const of = identity === undefined ? plan : { ...plan, identity };
    return new Follower(store, of, random, feed, place);
  }

  /** Takes a random step: a piece of the walk, or some changes. */
  async step(): Promise<void> {
    if (this.#random() < 0.4) await this.#walk(1 + below(this.#random, 4));
    else await this.#drain(1 + below(this.#random, 8));
  }

  /** Takes a piece of the walk and some changes. */
  async advance(rows: number): Promise<void> {
    await this.#walk(rows);
    await this.#drain(1_000);
  }

  /** Ends the walk and applies changes until the feed is up to date. */
  async finish(): Promise<void> {
    for (let moves = 0; ; moves++) {
      assert.ok(moves < 10_000, 'a follower comes to its end');
      if (this.isWalking) await this.#walk(7);
      else if (await this.#drain(1 + below(this.#random, 20))) return;
    }
  }

  /** Applies the changes of some keys. Resolves with whether the feed is up to date. */
  async #drain(most: number): Promise<boolean> {
    const waitMs = this.#random() < 0.3 ? 1 : 0; // a read that waits uses what readers share
    const size = { most, waitMs };
    const read = await this.#feed.read(this.#place, size, this.#plan.identity, NEVER);
    const { keys, next, isUpToDate, found } = read;
    const few = { rows: 1 + below(this.#random, 9), bytes: PLENTY };
    const rows = await lookUp(this.#feed, keys, this.#planAt(next), few, found);
    for (const key of keys) this.copy.delete(nameOf(key));
    for (const row of rows) if (this.#hasPassed(row)) this.copy.set(nameOf(row), row);
    this.#place = next;
    return isUpToDate;
  }

  async #walk(most: number): Promise<void> {
    if (!this.isWalking) return;
    const from = this.#walked ? { after: this.#walked } : {};
    const size = { rows: most, bytes: PLENTY };
    const batch = await this.#store.read(this.#planAt(this.#place), from, size, NEVER);
    const { last, more } = batch;
    for (const row of takeRows(batch)) this.copy.set(nameOf(row), row);
    this.#walked = last ?? this.#walked;
    this.isWalking = more;
  }

  #hasPassed(row: Buffer): boolean {
    if (!this.isWalking) return true;
    return this.#walked !== null && compareValues(idIn(row), idIn(this.#walked)) <= 0;
  }

  /** Every read sees the changes that the follower has read. */
  #planAt({ seen }: FeedPlace): Plan {
    return seen === undefined ? this.#plan : { ...this.#plan, since: seen };
  }
}

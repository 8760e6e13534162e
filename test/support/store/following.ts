import assert from 'node:assert/strict';
import type { Bookmark } from '../../../src/store/bookmark.ts';
import { bookmarkOf } from '../../../src/store/bookmark.ts';
import { BSON } from '../../../src/store/bson.ts';
import type { ChangedKeys, ChangeFeed, FeedPlace } from '../../../src/store/change-feed.ts';
import { compareValues } from '../../../src/store/order.ts';
import type { Plan, Collection } from '../../../src/store/store.ts';
import { lookUps } from '../../../src/store/tail.ts';
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

/** The rows of keys, copied. */
export async function lookedUp(
  feed: ChangeFeed,
  keys: readonly Bookmark[],
  plan: Plan,
  rows = 1_000,
): Promise<Buffer[]> {
  const found: Buffer[] = [];
  const size = { rows, bytes: PLENTY };
  for await (const batch of lookUps(keys, plan, (rest, bound) => feed.lookUp(rest, bound, size, NEVER)))
    found.push(...takeRows(batch));
  return found;
}

/** Where a follower is: what a cursor holds. */
interface Checkpoint {
  readonly feed: FeedPlace;
  /** The last row of the walk. Null: before the first row. */
  readonly walked: Bookmark | null;
  readonly isWalking: boolean;
  readonly copy: ReadonlyMap<string, Buffer>;
}

/**
 * A client that keeps a copy of a set: it walks the rows in order of id, and applies the changes between the pieces. A
 * row beyond its place is left out, because the walk will meet it. A removal is always applied.
 */
export class Follower {
  copy = new Map<string, Buffer>();
  readonly #store: Collection;
  readonly #feed: ChangeFeed;
  readonly #plan: Plan;
  readonly #random: Random;
  readonly #signal = new AbortController().signal;
  #at: Checkpoint;
  #saved: Checkpoint;

  private constructor(store: Collection, plan: Plan, random: Random, feed: ChangeFeed, place: FeedPlace) {
    this.#store = store;
    this.#feed = feed;
    this.#plan = plan;
    this.#random = random;
    this.#saved = this.#at = { feed: place, walked: null, isWalking: true, copy: new Map() };
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

  /** Takes a random step: a piece of the walk, some changes, a checkpoint, or a cut and a resume. */
  async step(): Promise<void> {
    const choice = this.#random();
    if (choice < 0.35) await this.#walk(1 + below(this.#random, 4));
    else if (choice < 0.75) await this.drain(1 + below(this.#random, 8));
    else if (choice < 0.87) this.#checkpoint();
    else this.#resume();
  }

  get isWalking(): boolean {
    return this.#at.isWalking;
  }

  /** Takes a piece of the walk and some changes, and then a checkpoint. */
  async advance(rows: number): Promise<void> {
    await this.#walk(rows);
    await this.drain(1_000);
    this.#checkpoint();
  }

  /** Ends the walk and applies changes until the feed is up to date. */
  async finish(): Promise<void> {
    for (let moves = 0; ; moves++) {
      assert.ok(moves < 10_000, 'a follower comes to its end');
      if (this.#at.isWalking) await this.#walk(7);
      else if (await this.drain(1 + below(this.#random, 20))) return;
      this.#checkpoint();
    }
  }

  /** Applies the changes of some keys. Resolves with whether the feed is up to date. */
  async drain(most: number): Promise<boolean> {
    const { feed, walked, isWalking } = this.#at;
    // A read that waits uses what readers share.
    const waitMs = this.#random() < 0.3 ? 1 : 0;
    const changed = await this.#feed.read(feed, { most, waitMs }, this.#plan.identity, this.#signal);
    const lines = await this.#linesOf(changed, (id) => {
      if (!isWalking) return true;
      return walked !== null && compareValues(id, idIn(walked)) <= 0;
    });
    if (!this.#receives(lines)) return false;
    this.#at = { ...this.#at, feed: changed.next };
    return changed.isUpToDate;
  }

  /** The lines of a response about these keys: first removed rows, then the rows that are wanted. */
  async #linesOf({ keys, next }: ChangedKeys, isWanted: (id: unknown) => boolean): Promise<readonly Line[]> {
    const rows = await lookedUp(this.#feed, keys, this.#planAt(next), 1 + below(this.#random, 9));
    const found = new Set(rows.map(nameOf));
    const gone = keys.map(nameOf).filter((name) => !found.has(name));
    const present = rows.filter((row) => isWanted(idIn(row))).map((row): Line => [nameOf(row), row]);
    return [...gone.map((name): Line => [name, null]), ...present];
  }

  async #walk(most: number): Promise<void> {
    if (!this.#at.isWalking) return;
    const { walked, feed } = this.#at;
    const from = walked ? { after: walked } : {};
    const size = { rows: most, bytes: PLENTY };
    const batch = await this.#store.read(this.#planAt(feed), from, size, NEVER);
    const { last, more } = batch;
    if (!this.#receives(takeRows(batch).map((row): Line => [nameOf(row), row]))) return;
    this.#at = { ...this.#at, walked: last ?? walked, isWalking: more };
  }

  /** Applies lines. Now and then the client is cut at one of them, and false is returned. */
  #receives(lines: readonly Line[]): boolean {
    const end = this.#random() < 0.12 ? below(this.#random, lines.length + 1) : Infinity;
    for (const [name, row] of lines.slice(0, end))
      if (row) this.copy.set(name, row);
      else this.copy.delete(name);
    if (end === Infinity) return true;
    this.#resume();
    return false;
  }

  #checkpoint(): void {
    this.#saved = { ...this.#at, copy: new Map(this.copy) };
  }

  /** The client was cut. It resumes at its last checkpoint, and may keep what came after that. */
  #resume(): void {
    this.#at = this.#saved;
    if (this.#random() < 0.5) this.copy = new Map(this.#saved.copy);
  }

  /** Every read sees the changes that the follower has read. */
  #planAt({ seen }: FeedPlace): Plan {
    return seen === undefined ? this.#plan : { ...this.#plan, since: seen };
  }
}

/** The name of a row, and the row. Null: it is gone. */
type Line = readonly [name: string, row: Buffer | null];

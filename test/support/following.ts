import type { Bookmark } from '../../src/store/bookmark.ts';
import { bookmarkOf } from '../../src/store/bookmark.ts';
import { BSON } from '../../src/store/bson.ts';
import type { ChangedKeys, ChangeFeed, FeedPlace } from '../../src/store/change-feed.ts';
import type { Plan, RowStore } from '../../src/store/store.ts';
import { compareBson } from './bson-order.ts';
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
  for await (const batch of feed.rows(keys, plan, { rows, bytes: PLENTY }, NEVER))
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
  readonly #store: RowStore;
  readonly #feed: ChangeFeed;
  readonly #plan: Plan;
  readonly #random: Random;
  #at: Checkpoint;
  #saved: Checkpoint;

  private constructor(store: RowStore, plan: Plan, random: Random, feed: ChangeFeed, place: FeedPlace) {
    this.#store = store;
    this.#feed = feed;
    this.#plan = plan;
    this.#random = random;
    this.#saved = this.#at = { feed: place, walked: null, isWalking: true, copy: new Map() };
  }

  /** Begins with an empty copy. */
  static async begin(store: RowStore, plan: Plan, random: Random): Promise<Follower> {
    const feed = store.changes;
    if (!feed) throw new Error('the store tells no changes');
    const place = await feed.now(NEVER);
    const identity = await store.identity(NEVER);
    const of = identity === undefined ? plan : { ...plan, identity };
    return new Follower(store, of, random, feed, place);
  }

  /** Takes a random step: a piece of the walk, some changes, a checkpoint, or a cut and a resume. */
  async step(): Promise<void> {
    const choice = this.#random();
    if (choice < 0.35) await this.#walk(1 + below(this.#random, 6));
    else if (choice < 0.75) await this.drain(1 + below(this.#random, 8));
    else if (choice < 0.9) this.#saved = { ...this.#at, copy: new Map(this.copy) };
    else this.#resume();
  }

  /** Ends the walk and applies changes until the feed is up to date. */
  async finish(): Promise<void> {
    while (this.#at.isWalking) await this.#walk(7);
    while (!(await this.drain(1 + below(this.#random, 20))));
  }

  /** Applies the changes of some keys. Resolves with whether the feed is up to date. */
  async drain(most: number): Promise<boolean> {
    const { feed, walked, isWalking } = this.#at;
    const changed = await this.#feed.read(feed, { most, waitMs: 0 }, this.#plan.identity, NEVER);
    await this.apply(changed, (id) => {
      if (!isWalking) return true;
      return walked !== null && compareBson(id, idIn(walked)) <= 0;
    });
    this.#at = { ...this.#at, feed: changed.next };
    return changed.isUpToDate;
  }

  async apply({ keys }: ChangedKeys, isWanted: (id: unknown) => boolean): Promise<void> {
    const rows = await lookedUp(this.#feed, keys, this.#plan, 1 + below(this.#random, 9));
    const found = new Set(rows.map(nameOf));
    for (const key of keys) if (!found.has(nameOf(key))) this.copy.delete(nameOf(key));
    for (const row of rows) if (isWanted(idIn(row))) this.copy.set(nameOf(row), row);
  }

  async #walk(rows: number): Promise<void> {
    if (!this.#at.isWalking) return;
    const { walked } = this.#at;
    const from = walked ? { after: walked } : {};
    const batch = await this.#store.read(this.#plan, from, { rows, bytes: PLENTY }, NEVER);
    const { last, more } = batch;
    for (const row of takeRows(batch)) this.copy.set(nameOf(row), row);
    this.#at = { ...this.#at, walked: last ?? walked, isWalking: more };
  }

  /** The client was cut. It resumes at its last checkpoint, and may keep what came after that. */
  #resume(): void {
    this.#at = this.#saved;
    if (this.#random() < 0.5) this.copy = new Map(this.#saved.copy);
  }
}

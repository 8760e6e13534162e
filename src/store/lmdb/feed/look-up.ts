import { collectionReplaced, snapshotUnsupported } from '../../../errors.ts';
import type { Batch } from '../../batch.ts';
import { bookmarkOf, KEY, type Bookmark, type Identity } from '../../bookmark.ts';
import type { Plan, Size } from '../../store.ts';
import { Filler, type RowSize } from '../filler.ts';
import { compareKeys, type Key } from '../../keys.ts';
import { keyAt, keyOfNamed } from '../rows/keyed.ts';
import type { FeedSet, LmdbFeedOptions } from './feed.ts';

/** Rows looked up in one look: about 3 ms. */
const LOOKED_UP_AT_ONCE = 2_000;

const BY_ID = { sort: KEY } as const;

interface RowLookUpOptions extends Pick<LmdbFeedOptions, 'tables' | 'slots' | 'scheduler' | 'told'> {
  readonly rowSize: RowSize;
}

/** Looks rows up by their ids. See ChangeFeed.rows. */
export class RowLookUp {
  readonly #set: FeedSet;
  readonly #options: RowLookUpOptions;
  readonly #keys: readonly Bookmark[];
  readonly #plan: Plan;
  readonly #wanted: readonly { readonly path: string; readonly key: Key }[];
  /** The rows that were looked up: 7 and 7.0 lead to one row. */
  readonly #done = new Set<string>();
  #at = 0;
  #identity: Identity | undefined;

  constructor(set: FeedSet, options: RowLookUpOptions, keys: readonly Bookmark[], plan: Plan) {
    this.#set = set;
    this.#options = options;
    this.#keys = keys;
    this.#plan = plan;
    this.#identity = plan.identity;
    this.#wanted = (plan.equals ?? []).map(({ path, value }) => ({ path, key: keyOfNamed(value) }));
  }

  async *batches(size: Size, signal: AbortSignal): AsyncGenerator<Batch, void, undefined> {
    const { scheduler, told } = this.#options;
    if (this.#plan.at !== undefined) throw snapshotUnsupported();
    while (this.#at < this.#keys.length) {
      const batch = await told(scheduler.take(() => this.#look(size), signal, size.patient));
      if (batch) yield batch;
    }
  }

  /** Null when none of the next keys has a row that fits. */
  #look(size: Size): Batch | null {
    const { slots, rowSize } = this.#options;
    const set = this.#set.present();
    // Without an identity in the plan, all batches are still of one collection.
    this.#identity ??= set.identity;
    if (this.#identity !== set.identity) throw collectionReplaced();
    this.#set.assertWhole();
    this.#set.checkPlan(this.#plan);
    const rows = Math.min(size.rows, this.#keys.length - this.#at);
    const filler = new Filler(slots, { ...size, rows }, rowSize);
    let isKept = false;
    try {
      this.#fill(filler, (id) => this.#set.keyOfId(id, set));
      rowSize.learn(filler.rows, filler.length);
      isKept = filler.rows > 0;
      return isKept ? this.#batchOf(filler) : null;
    } finally {
      if (!isKept) filler.slot.release();
    }
  }

  #fill(filler: Filler, keyOfId: (id: Bookmark) => Key | null): void {
    const { tables } = this.#options;
    const end = Math.min(this.#at + LOOKED_UP_AT_ONCE, this.#keys.length);
    tables.sink = {
      row: (document) => {
        if (this.#isWanted(document)) filler.row(document);
      },
    };
    for (; this.#at < end && !filler.full; this.#at++) {
      const id = this.#keys[this.#at];
      const key = id && keyOfId(id);
      if (!key) continue;
      const name = Buffer.from(key).toString('latin1');
      if (this.#done.has(name)) continue;
      this.#done.add(name);
      this.#set.rows.get(key);
    }
    tables.sink = null;
  }

  #isWanted(document: Uint8Array): boolean {
    return this.#wanted.every(({ path, key }) => {
      const found = keyAt(document, path);
      return typeof found !== 'string' && compareKeys(found, key) === 0;
    });
  }

  /** `more`: whether keys are left. Their rows may be gone. */
  #batchOf({ slot, rows, length, lastAt }: Filler): Batch {
    const last = bookmarkOf(slot.bytes(length).subarray(lastAt), BY_ID);
    const more = this.#at < this.#keys.length;
    const batch = { slot, start: 0, length, rows, last, more, release: () => slot.release() };
    return this.#identity === undefined ? batch : { ...batch, identity: this.#identity };
  }
}

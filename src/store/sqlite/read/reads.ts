import { noSuchPlace, snapshotUnsupported } from '../../../base/errors.ts';
import type { Batch, ReadBatch } from '../../batch.ts';
import { bookmarkOf, KEY, keyPaths, type Bookmark, type Identity } from '../../bookmark.ts';
import type { LookUpResult } from '../../change-feed.ts';
import { hasValues, hasValuesOf, keyAt, requiredValues } from '../../values/has-values.ts';
import { compareKeys, joinKeys } from '../../values/keys.ts';
import { keyOfValue } from '../../values/order.ts';
import type { From, Plan, Size } from '../../store.ts';
import { DamagedRowError, documentIn } from '../file/checked-rows.ts';
import { PASSED_AT_ONCE, type CollectionLooks, type LookParts } from './collection-looks.ts';
import { keyOfRow } from '../file/keyed.ts';
import { boundsBehind, isSingle, keysOfBookmark, prefixOf, rangeOf, type Range } from './range.ts';
import type { CollectionRecord } from '../file/collections.ts';

/** Rows looked up in one look: about 4 ms. */
const LOOKED_UP_AT_ONCE = 512;

/** How far a walk over all rows of a collection has come: the number of rows, and the end of the log at that time. */
interface WalkOfRows {
  readonly rows: number;
  readonly state: string;
}

/** Reads the rows of a collection. */
export class Reads {
  readonly #looks: CollectionLooks<LookParts>;
  /** By the bookmark that the walk goes on from. */
  readonly #walks = new WeakMap<Bookmark, WalkOfRows>();

  constructor(looks: CollectionLooks<LookParts>) {
    this.#looks = looks;
  }

  /** See RowReader.read. */
  async read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<ReadBatch> {
    if (plan.at !== undefined) throw snapshotUnsupported();
    if (plan.since !== undefined) throw noSuchPlace(); // only MongoDB has such times
    if (from.after && from.skip)
      throw new TypeError('a read begins after a row or after a number of rows, not both');
    signal.throwIfAborted();
    return this.#looks.within(plan, signal, async (looks) => {
      const { skip = 0 } = from;
      const isFar = skip > PASSED_AT_ONCE && !isSingle(plan);
      const passed = isFar ? await looks.pass(await looks.range(from.after), skip) : null;
      return looks.take((collection) => {
        if (isSingle(plan)) return this.#proved(collection, plan, this.single(collection, plan, from));
        const range = passed ? passed.rest : rangeOf(collection, plan, from.after);
        const batch = this.#looks.core.reader.batch(range, passed ? 0 : skip, size, plan);
        try {
          assertAhead(range, collection, plan, batch);
          this.#assertCounted(collection, plan, from, batch);
        } catch (error) {
          batch.release();
          throw error;
        }
        return this.#proved(collection, plan, batch);
      }, size.patient);
    });
  }

  /** See ChangeFeed.lookUp. */
  async lookUp(
    keys: readonly Bookmark[],
    plan: Plan,
    size: Size,
    signal: AbortSignal,
  ): Promise<LookUpResult> {
    if (plan.at !== undefined) throw snapshotUnsupported();
    const { looks, reader, log } = this.#looks.core;
    const isOfPlan = hasValuesOf(plan);
    const look = (): LookUpResult => {
      const collection = this.#looks.present({ ...plan, sort: KEY, equals: [] });
      const rows: Uint8Array[] = [];
      let taken = 0;
      let length = 0;
      for (const id of keys.slice(0, LOOKED_UP_AT_ONCE)) {
        if (rows.length >= size.rows || length >= size.bytes) break;
        taken++;
        const key = keyOfRow(id);
        const row = key && reader.row(collection.number, key);
        if (!row) log.assertRemoved(collection, id);
        if (!row || !isOfPlan(documentIn(row))) continue;
        rows.push(row);
        length += row.length;
      }
      if (rows.length === 0) return { taken, batch: null };
      // The rows of the other keys may be gone, so nothing is known of what follows.
      const batch = reader.batchOf(rows, taken < keys.length, { sort: KEY });
      return { taken, batch: { ...batch, identity: collection.identity } };
    };
    return looks.take(look, signal, size.patient);
  }

  /** In a look: the row of an id, if it also has the other values of the plan and comes after the bookmark. */
  single(collection: CollectionRecord, plan: Plan, from: From): Batch {
    const { reader } = this.#looks.core;
    const key = keyOfValue(plan.equals?.find(({ path }) => path === KEY)?.value);
    const row = reader.row(collection.number, key);
    const isFound = row !== null && !from.skip && isWanted(documentIn(row), plan, from.after);
    return reader.batchOf(isFound ? [row] : [], false, plan);
  }

  #proved({ identity }: CollectionRecord, plan: Plan, batch: Batch): ReadBatch {
    return { ...batch, identity, confirm: () => this.#confirm(plan, identity) };
  }

  /** Rejects unless the plan can read the collection as it is now, and it is of this identity. */
  async #confirm(plan: Plan, identity: Identity): Promise<void> {
    await this.#looks.core.looks.soon(() => this.#looks.present({ ...plan, identity }));
  }

  /**
   * In a look: counts the rows of a walk over the whole collection. Throws DamagedRowError when it ends with another number of
   * rows than were written, and nothing was written meanwhile: a page of the file is damaged.
   */
  #assertCounted(collection: CollectionRecord, plan: Plan, from: From, batch: Batch): void {
    if (!this.#looks.shape.hasChanges || from.skip || plan.equals?.length || plan.range || plan.ids) return;
    const { last, rows } = this.#looks.core.log.state(collection);
    const state = `${collection.number} ${last}`;
    const before = from.after ? this.#walks.get(from.after) : { rows: 0, state };
    if (before?.state !== state) return;
    const walked = before.rows + batch.rows;
    if (batch.last) this.#walks.set(batch.last, { rows: walked, state });
    if (batch.more || walked === rows) return;
    throw new DamagedRowError(`a walk over ${collection.label} ended after ${walked} rows of ${rows}`);
  }
}

/** Throws DamagedRowError when a walk that goes on behind a batch would not come ahead: it might never end. */
function assertAhead(
  range: Range | null,
  collection: CollectionRecord,
  plan: Plan,
  { last, more }: Batch,
): void {
  const rest = range && last && more ? rangeOf(collection, plan, last) : null;
  if (!range || !rest) return;
  const isAhead = range.reverse
    ? compareKeys(rest.high, range.high) < 0
    : compareKeys(rest.low, range.low) > 0;
  if (!isAhead) throw new DamagedRowError(`rows of ${collection.label} are not in their places`);
}

function isWanted(row: Uint8Array, plan: Plan, after: From['after']): boolean {
  const bounds = boundsBehind(plan, after);
  if (!bounds || !hasValues(row, requiredValues(plan.equals))) return false;
  if (plan.range && typeof keyAt(row, plan.sort) === 'string') return false;
  const own = joinKeys(prefixOf(plan.equals), ...keysOfBookmark(bookmarkOf(row, plan), keyPaths(plan)));
  return compareKeys(own, bounds.low) > 0 && compareKeys(own, bounds.high) < 0;
}

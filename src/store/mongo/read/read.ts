import type { ReadBatch } from '../../batch.ts';
import { KEY, keyOf, valueBookmarkOf, type Bookmark } from '../../bookmark.ts';
import { documentAt, endOfRow } from '../../values/bson-array.ts';
import { BSON_TYPE } from '../../values/bson-types.ts';
import { storeUnfit } from '../../../base/errors.ts';
import { comparePlaces } from '../../values/order.ts';
import type { Slots } from '../../turns/slots.ts';
import type { From, Plan, RowReader, Size } from '../../store.ts';
import { BatchBuilder } from './batch-builder.ts';
import type { Layout } from '../collection/create-collection.ts';
import type { Finder } from './find.ts';
import type { Layouts } from '../collection/layouts.ts';
import { isSingle, rangesOf, sortOf } from './index-ranges.ts';
import { inPresentCollection } from '../faults.ts';
import { isOfKey, type IndexedPlan, type Range } from '../plan.ts';
import { conditionsOf, type Condition } from './predicates.ts';

/** How much more to request than the average row size suggests, so that one find is nearly always enough. */
const MARGIN = 1.1;

/** Reads the rows of a collection by finds with index bounds, whose replies are not parsed. */
export class Reads {
  readonly #layouts: Layouts;
  readonly #finder: Finder;
  readonly #slots: Slots;
  /** Recent average size of a row, in bytes. Keeps a read of large rows from requesting 16 MB to use a single row. */
  #recentBytes = 256;

  constructor(layouts: Layouts, finder: Finder, slots: Slots) {
    this.#layouts = layouts;
    this.#finder = finder;
    this.#slots = slots;
  }

  /** Nearly always one find. More when a reply hit its limit of 16 MB, or rows were smaller than the recent average. */
  readonly read: RowReader['read'] = async (plan, from, size, signal) => {
    if (from.after && from.skip)
      throw new TypeError('a read begins after a row or after a number of rows, not both');
    signal.throwIfAborted();
    try {
      return await inPresentCollection(plan.identity, signal, () => this.#readOnce(plan, from, size, signal));
    } catch (error) {
      throw await this.#layouts.orReplaced(error, plan.identity, signal);
    }
  };

  /** The value behind `equals` of the first row that meets `condition`, in the direction `sign` of the index. */
  async first(plan: IndexedPlan, condition: Condition, signal: AbortSignal): Promise<Bookmark | null> {
    const { index, equals = [], sort, direction } = plan;
    const isForward = direction === 1;
    const filter = { ...conditionsOf(equals), [sort]: condition };
    const range = { index, sort: sortOf(index, isForward), isForward, filter };
    const { slot, start, length } = await inPresentCollection(undefined, signal, async () => {
      const [layout] = await this.#layouts.layoutFor(plan, signal);
      return this.#finder.range(range, 1, layout, signal, 0, sort);
    });
    const bytes = slot.bytes(start + length).subarray(start);
    const found =
      length > 0 ? valueBookmarkOf(bytes.slice(documentAt(bytes, 0), endOfRow(bytes, 0)), sort) : null;
    slot.release();
    return found;
  }

  async #readOnce(asked: Plan, from: From, size: Size, signal: AbortSignal): Promise<ReadBatch> {
    const layouts = this.#layouts;
    const [layout, plan] = await layouts.layoutFor(asked, signal);
    const { index, identity = layout.identity } = plan;
    const looking = layouts.recent(index);
    const isOne = isSingle(plan);
    const builder = new BatchBuilder(plan, size);
    try {
      const more = await this.#gather(builder, plan, from, layout, signal);
      if (builder.rows > 0) this.#recentBytes += (builder.bytes / builder.rows - this.#recentBytes) / 4;
      if (!isOne) this.#checkOrder(plan, from.after, builder.last);
      await (looking ?? layouts.recent(index, !more && !isOne));
      await layouts.check(index, signal);
      return {
        ...builder.toBatch(this.#slots, more, identity),
        // Each read names its collection, and the index of _id is as old as that: only an end needs a look at these.
        confirm: async (end) =>
          isOfKey(index) && more ? undefined : layouts.confirm(index, identity, !more, end),
      };
    } catch (error) {
      builder.release();
      throw error;
    }
  }

  /** Fills a builder from the plan's ranges. Returns whether rows are left after those that it took. */
  async #gather(
    builder: BatchBuilder,
    plan: IndexedPlan,
    { after = null, skip = 0 }: { readonly after?: Bookmark | null; readonly skip?: number },
    layout: Layout,
    signal: AbortSignal,
  ): Promise<boolean> {
    let ranges = rangesOf(plan, after, layout.clustered);
    let toSkip = skip;
    for (let range = ranges[0]; range; range = ranges[0]) {
      const before = builder.rows;
      const limit = this.#limitOf(builder, range);
      const [, ...lower] = ranges;
      if (toSkip > 0 && lower.length > 0) {
        const before = await this.#countUpTo(toSkip, range, layout, signal);
        if (before < toSkip) {
          toSkip -= before;
          ranges = lower;
          continue;
        }
      }
      const reply = await this.#finder.range(range, limit, layout, signal, toSkip);
      toSkip = 0;
      const { rows, left } = builder.take(reply, range.bookmark, range.isLoose ? plan.direction : undefined);
      if ((left || reply.cut) && builder.isFull) return true;
      if (left || reply.cut || rows === limit) {
        const rest = rangesOf(plan, builder.last ?? after, layout.clustered);
        ranges = builder.rows > before ? rest : rest.map(withoutBookmark);
        continue;
      }
      ranges = lower;
    }
    return false;
  }

  /** One row more than requested shows whether more follow. Another one when the bookmark's own row comes first. */
  #limitOf({ rows, bytes, missing }: BatchBuilder, { bookmark }: Range): number {
    const rowBytes = rows > 0 ? bytes / rows : this.#recentBytes;
    const enough = Math.max(0, Math.ceil((missing.bytes / rowBytes) * MARGIN));
    return Math.min(missing.rows, enough) + 1 + (bookmark ? 1 : 0);
  }

  /** The number of rows in a range, at most `most`. They come as keys, so a reply that is cut is followed by others. */
  async #countUpTo(most: number, range: Range, layout: Layout, signal: AbortSignal): Promise<number> {
    let rows = 0;
    for (let isCut = true; isCut && rows < most;) {
      const reply = await this.#finder.range(range, most - rows, layout, signal, rows, KEY);
      const bytes = reply.slot.bytes(reply.start + reply.length);
      for (let at = reply.start; at < bytes.length; at = endOfRow(bytes, at)) rows++;
      reply.slot.release();
      isCut = reply.cut;
    }
    return rows;
  }

  /** Every read must continue beyond its bookmark. Otherwise its index does not hold each row exactly once. */
  #checkOrder(plan: Plan, after: Bookmark | undefined, last: Bookmark | null): void {
    if (!last) return;
    const isArray = last[4] === BSON_TYPE.array; // the type of a document's first value is behind its length
    if (!isArray && (!after || comparePlaces(last, after) * plan.direction > 0)) return;
    this.#layouts.forget();
    throw storeUnfit('Rows were read out of order: their index does not contain each row exactly once.');
  }
}

/**
 * The range without its bookmark's row: when that and the next one exceed a reply of 16 MB, every reply would be the
 * bookmark's row alone. Not used for every read, because it slows a scan by 5 to 20 %.
 */
function withoutBookmark({ bookmark, ...range }: Range): Range {
  if (!bookmark) return range;
  const others = { _id: { $ne: keyOf(bookmark)._id } };
  return { ...range, filter: range.filter ? { $and: [range.filter, others] } : others };
}

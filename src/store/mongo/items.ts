import type { Batch } from '../batch.ts';
import { KEY, keyOf, type Bookmark } from '../bookmark.ts';
import { BSON_TYPE } from '../bson-types.ts';
import { comparePlaces } from '../order.ts';
import { collectionReplaced, storeUnfit } from '../../errors.ts';
import { addIndex } from './make.ts';
import type { Layout } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import type { ChangeFeed } from '../change-feed.ts';
import { replaceByEmpty } from './clear.ts';
import { Counter } from './count.ts';
import type { Finder } from './find.ts';
import { BatchBuilder } from './batch-builder.ts';
import { insertRows } from './insert.ts';
import { commandKey } from './key.ts';
import { inPresentCollection } from './outdated.ts';
import { indexOf, rangesOf, type Range } from './plan.ts';
import { removeRows } from './remove.ts';
import { postponeIndexes, type MakeIndexes } from './postpone-indexes.ts';
import type { Setup } from './setup.ts';
import { presentTime } from './snapshot.ts';
import { Splitter } from './split.ts';
import type { IndexWatch } from './index-watch.ts';
import type { Slots } from '../slots.ts';
import type {
  AddedIndex,
  Count,
  CountMode,
  Declaration,
  From,
  InsertResult,
  OnConflict,
  RowStore,
} from '../store.ts';
import type { Identity, Plan, PointInTime, Size } from '../store.ts';

/** How much more to request than the average row size suggests, so that one find is nearly always enough. */
const MARGIN = 1.1;

/** The items of a MongoDB collection. They are read by finds with index bounds, and the replies are not parsed. */
export class MongoItems implements Omit<RowStore, 'insert' | 'postponeIndexes'> {
  readonly changes?: ChangeFeed;
  readonly #connection: MongoConnection;
  readonly #setup: Setup;
  readonly #watch: IndexWatch;
  readonly #finder: Finder;
  readonly #slots: Slots;
  readonly #counter: Counter;
  readonly #splitter: Splitter;
  /** Recent average size of a row, in bytes. Keeps a read of large rows from requesting 16 MB to use a single row. */
  #rowBytes = 256;
  /** The collection that the first rows were written into. An import does not continue in another collection. */
  #writtenTo: Identity | undefined;

  constructor(
    connection: MongoConnection,
    setup: Setup,
    watch: IndexWatch,
    finder: Finder,
    slots: Slots,
    changes?: ChangeFeed,
  ) {
    if (changes) this.changes = changes;
    this.#connection = connection;
    this.#setup = setup;
    this.#watch = watch;
    this.#finder = finder;
    this.#slots = slots;
    this.#counter = new Counter(connection, setup);
    this.#splitter = new Splitter(connection, setup, this.#counter, finder);
  }

  /** Nearly always one find. More when a reply hit its limit of 16 MB, or rows were smaller than the recent average. */
  async read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<Batch> {
    if (from.after && from.skip)
      throw new TypeError('a read begins after a row or after so many rows, not both');
    signal.throwIfAborted();
    try {
      return await inPresentCollection(plan.identity, signal, () => this.#read(plan, from, size, signal));
    } catch (error) {
      throw await this.#watch.orReplaced(error, plan.identity, signal);
    }
  }

  async #read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<Batch> {
    const index = indexOf(plan);
    const layout = await this.#watch.layoutFor(index, signal);
    const looking = this.#watch.recent(index);
    const builder = new BatchBuilder(plan, size);
    try {
      const more = await this.#gather(builder, plan, from, layout, signal);
      if (builder.rows > 0) this.#rowBytes += (builder.bytes / builder.rows - this.#rowBytes) / 4;
      this.#checkOrder(plan, from.after, builder.last);
      const readBy = layout.specs.get(index);
      if (looking) await looking;
      await this.#watch.check(index, readBy, signal);
      const identity = plan.identity ?? layout.identity;
      return builder.toBatch(this.#slots, more, { readBy, identity });
    } catch (error) {
      builder.release();
      throw error;
    }
  }

  confirm({ readBy }: Pick<Batch, 'readBy'>, plan: Plan, signal: AbortSignal): Promise<void> {
    return this.#watch.confirm(indexOf(plan), readBy, plan.identity, signal);
  }

  async identity(signal: AbortSignal): Promise<Identity | undefined> {
    return (await this.#setup.layout(signal)).identity;
  }

  async get(id: Bookmark, signal: AbortSignal): Promise<Batch | null> {
    const builder = new BatchBuilder({ sort: KEY }, { rows: 1, bytes: Infinity });
    const found = await inPresentCollection(undefined, signal, async () =>
      this.#finder.one(commandKey(id)._id, await this.#setup.layout(signal), signal),
    );
    builder.take(found);
    return builder.rows > 0 ? builder.toBatch(this.#slots, false) : null;
  }

  async count(plan: Plan, mode: CountMode, signal: AbortSignal): Promise<Count> {
    signal.throwIfAborted();
    if (plan.ids)
      throw new TypeError('no query says a range of ids of several types: it is read, not counted');
    return inPresentCollection(plan.identity, signal, async () =>
      this.#counter.count(plan, mode, await this.#watch.layoutFor(indexOf(plan), signal), signal),
    );
  }

  async split(plan: Plan, parts: number, signal: AbortSignal): Promise<readonly Bookmark[]> {
    signal.throwIfAborted();
    return inPresentCollection(plan.identity, signal, async () =>
      this.#splitter.split(plan, parts, await this.#watch.layoutFor(indexOf(plan), signal), signal),
    );
  }

  async pointInTime(signal: AbortSignal): Promise<PointInTime | null> {
    signal.throwIfAborted();
    await this.#setup.layout(signal); // a collection that does not exist yet has no time
    return presentTime(this.#connection, this.#setup.collection, signal);
  }

  /** A write cannot name the identity of its collection, and creates a missing one: it is checked before and after. */
  async insert(
    rows: readonly Uint8Array[],
    onConflict: OnConflict,
    refusalOf?: Declaration['refusalOf'],
  ): Promise<InsertResult> {
    const identity = await this.#watch.present();
    this.#writtenTo ??= identity;
    if (this.#writtenTo !== identity) throw collectionReplaced();
    const result = await insertRows(this.#connection, this.#setup.collection, rows, onConflict, refusalOf);
    if ((await this.#watch.present()) !== identity) throw collectionReplaced();
    return result;
  }

  remove(keys: readonly Bookmark[]): Promise<number> {
    return removeRows(this.#connection, this.#setup.collection, this.#watch, keys);
  }

  /** See RowStore. `wanted`: the paths of the indexes that a start makes when they are missing. */
  async postponeIndexes(wanted: readonly (readonly string[])[]): Promise<MakeIndexes | null> {
    const { sharded } = await this.#setup.layout();
    if (sharded || !this.#setup.manages) return null;
    const make = await postponeIndexes(this.#connection, this.#setup.collection, wanted);
    if (make) this.#watch.close(); // it would make them at its next look
    return make;
  }

  addIndex(paths: readonly string[], signal: AbortSignal): Promise<AddedIndex> {
    return addIndex(this.#connection, this.#setup.collection, paths, signal);
  }

  async clear(signal: AbortSignal): Promise<Count> {
    const layout = await this.#setup.layout(signal);
    const { collection } = this.#setup;
    if (layout.sharded)
      throw storeUnfit(`The collection '${collection}' may be sharded. Such a collection is not replaced.`);
    const all = { sort: KEY, direction: 1 } as const;
    const exact = await this.count(all, 'exact', signal);
    const count = exact.is === 'exact' ? exact : await this.count(all, 'estimated', signal);
    signal.throwIfAborted();
    try {
      await replaceByEmpty(this.#connection, collection);
    } finally {
      this.#setup.forget(layout);
      this.#writtenTo = undefined; // the next rows go into the new collection
    }
    return count;
  }

  /** Every read must continue beyond its bookmark. Otherwise its index does not hold each row exactly once. */
  #checkOrder(plan: Plan, after: Bookmark | undefined, last: Bookmark | null): void {
    if (!last) return;
    const isArray = last[4] === BSON_TYPE.array; // the type of a document's first value is behind its length
    if (!isArray && (!after || comparePlaces(last, after) * plan.direction > 0)) return;
    this.#setup.forget();
    throw storeUnfit('Rows were read out of order: their index does not contain each row exactly once.');
  }

  /** Fills a builder from the plan's ranges. Returns whether rows are left after those that it took. */
  async #gather(
    builder: BatchBuilder,
    plan: Plan,
    { after = null, skip = 0 }: { readonly after?: Bookmark | null; readonly skip?: number },
    layout: Layout,
    signal: AbortSignal,
  ): Promise<boolean> {
    let ranges = rangesOf(plan, after, layout.clustered);
    let toSkip = skip;
    for (let range = ranges[0]; range; range = ranges[0]) {
      const before = builder.rows;
      const limit = this.#limit(builder, range);
      const [, ...lower] = ranges;
      if (toSkip > 0 && lower.length > 0) {
        const before = await this.#finder.countUpTo(range, toSkip, layout, signal);
        if (before < toSkip) {
          toSkip -= before;
          ranges = lower;
          continue;
        }
      }
      const reply = await this.#finder.range(range, limit, toSkip, layout, signal);
      toSkip = 0;
      const { rows, left } = builder.take(reply, range.bookmark, range.isLoose ? plan.direction : undefined);
      if ((left || reply.cut) && builder.isFull) return true;
      if (left || reply.cut || rows === limit) {
        const rest = rangesOf(plan, builder.last ?? after, layout.clustered);
        ranges = builder.rows > before ? rest : rest.map(withoutBookmark);
        continue;
      }
      if (lower.length === 0) return false;
      if (range.floor && !(await this.#finder.isAnyBelow(range, layout, signal))) return false;
      ranges = lower;
    }
    return false;
  }

  /** One row more than requested tells whether more follow. Another one when the bookmark's own row comes first. */
  #limit({ rows, bytes, missing }: BatchBuilder, { bookmark }: Range): number {
    const rowBytes = rows > 0 ? bytes / rows : this.#rowBytes;
    const enough = Math.max(0, Math.ceil((missing.bytes / rowBytes) * MARGIN));
    return Math.min(missing.rows, enough) + 1 + (bookmark ? 1 : 0);
  }
}

/**
 * The range without its bookmark's row. When that row and the next one do not fit into one reply of 16 MB, every reply
 * would be the bookmark's row alone, so the server must leave it out. Not used for every read, because it slows a scan
 * by 5 to 20 %.
 */
function withoutBookmark({ bookmark, ...range }: Range): Range {
  if (!bookmark) return range;
  const others = { _id: { $ne: keyOf(bookmark)._id } };
  return { ...range, filter: range.filter ? { $and: [range.filter, others] } : others };
}

import type { Batch } from '../batch.ts';
import { keyOf } from '../bookmark.ts';
import type { Bookmark } from '../bookmark.ts';
import { collectionReplaced, storeUnfit } from '../../errors.ts';
import type { Layout } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { Counter } from './count.ts';
import type { Finder } from './find.ts';
import { Gathering } from './batch-builder.ts';
import { insertRows } from './insert.ts';
import { commandKey } from './key.ts';
import { compareKeys } from './order.ts';
import { indexOf, rangesOf } from './plan.ts';
import type { Range } from './plan.ts';
import type { Setup } from './setup.ts';
import { presentTime } from './snapshot.ts';
import { Splitter } from './split.ts';
import type { Watch } from './index-watch.ts';
import type { Slots } from '../slots.ts';
import type { Count, CountMode, From, InsertResult, ItemStore, OnConflict } from '../store.ts';
import type { Identity, Plan, PointInTime, Size } from '../store.ts';

/** How much more is asked for than the average row says is needed, so that one find is enough nearly always. */
const MARGIN = 1.1;

/** The items of a MongoDB collection, read by finds on index bounds whose replies nobody parses. */
export class MongoItems implements ItemStore {
  readonly #connection: MongoConnection;
  readonly #setup: Setup;
  readonly #watch: Watch;
  readonly #finder: Finder;
  readonly #slots: Slots;
  readonly #counter: Counter;
  readonly #splitter: Splitter;
  /** Bytes a row had on average lately: keeps a read of large rows from asking for 16 MB to use one of them. */
  #rowBytes = 256;
  /** The collection that rows were written into first: an import does not go on in another one. */
  #writtenTo: Identity | undefined;

  constructor(connection: MongoConnection, setup: Setup, watch: Watch, finder: Finder, slots: Slots) {
    this.#connection = connection;
    this.#setup = setup;
    this.#watch = watch;
    this.#finder = finder;
    this.#slots = slots;
    this.#counter = new Counter(connection, setup);
    this.#splitter = new Splitter(connection, setup, this.#counter, finder);
  }

  /** One find nearly always; more when its reply was at its 16 MB, or rows turned out smaller than lately. */
  async read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<Batch> {
    if (from.after && from.skip)
      throw new TypeError('a read begins after a row or after so many rows, not both');
    signal.throwIfAborted();
    try {
      return await this.#read(plan, from, size, signal);
    } catch (error) {
      throw await this.#watch.orReplaced(error, plan.identity, signal);
    }
  }

  async #read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<Batch> {
    const role = indexOf(plan);
    const layout = await this.#watch.layoutFor(role, signal);
    const looking = this.#watch.recent(role);
    const gathering = new Gathering(plan, size);
    try {
      const more = await this.#gather(gathering, plan, from, layout, signal);
      if (gathering.rows > 0) this.#rowBytes += (gathering.bytes / gathering.rows - this.#rowBytes) / 4;
      this.#checkOrder(plan, from.after, gathering.last);
      const readBy = layout.specs[role];
      if (looking) await looking;
      await this.#watch.check(role, readBy, signal);
      const identity = plan.identity ?? layout.identity;
      return gathering.toBatch(this.#slots, more, { readBy, ...(identity !== undefined && { identity }) });
    } catch (error) {
      gathering.release();
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
    const layout = await this.#setup.layout(signal);
    const gathering = new Gathering({ order: 'id' }, { rows: 1, bytes: Infinity });
    gathering.take(await this.#finder.one(commandKey(id)._id, layout, signal));
    return gathering.rows > 0 ? gathering.toBatch(this.#slots, false) : null;
  }

  async count(plan: Plan, mode: CountMode, signal: AbortSignal): Promise<Count> {
    signal.throwIfAborted();
    if (plan.ids)
      throw new TypeError('no query says a range of ids of several types: it is read, not counted');
    return this.#counter.count(plan, mode, await this.#watch.layoutFor(indexOf(plan), signal), signal);
  }

  async split(plan: Plan, parts: number, signal: AbortSignal): Promise<readonly Bookmark[]> {
    signal.throwIfAborted();
    return this.#splitter.split(plan, parts, await this.#watch.layoutFor(indexOf(plan), signal), signal);
  }

  async pointInTime(signal: AbortSignal): Promise<PointInTime | null> {
    signal.throwIfAborted();
    await this.#setup.layout(signal); // a collection that is not there yet has no time
    return presentTime(this.#connection, this.#setup.collection, signal);
  }

  /** A write does not say which collection it means, and makes one that is gone: so that is looked at before and after. */
  async insert(rows: readonly Uint8Array[], onConflict: OnConflict): Promise<InsertResult> {
    const identity = await this.#watch.present();
    this.#writtenTo ??= identity;
    if (this.#writtenTo !== identity) throw collectionReplaced();
    const result = await insertRows(this.#connection, this.#setup.collection, rows, onConflict);
    if ((await this.#watch.present()) !== identity) throw collectionReplaced();
    return result;
  }

  /** Every read goes on beyond its bookmark, or it is no read of an index that holds each row once. */
  #checkOrder(plan: Plan, after: Bookmark | undefined, last: Bookmark | null): void {
    if (!last) return;
    const key = keyOf(last);
    const order = after ? compareKeys(key, keyOf(after)) : null;
    if (!Array.isArray(key.price) && (order === null || order * plan.direction > 0)) return;
    this.#setup.forget();
    throw storeUnfit(
      `Rows of '${this.#setup.collection}' came out of order: the index they are read by does not hold each of them once.`,
    );
  }

  /** Fills a gathering from the plan's ranges; says whether rows are left behind what it took. */
  async #gather(
    gathering: Gathering,
    plan: Plan,
    { after = null, skip = 0 }: { readonly after?: Bookmark | null; readonly skip?: number },
    layout: Layout,
    signal: AbortSignal,
  ): Promise<boolean> {
    let ranges = rangesOf(plan, after, layout.clustered);
    let toSkip = skip;
    for (let range = ranges[0]; range; range = ranges[0]) {
      const before = gathering.rows;
      const limit = this.#limit(gathering, range);
      const [, ...lower] = ranges;
      if (toSkip > 0 && lower.length > 0 && range.stretch) {
        const before = await this.#counter.inStretch(plan, range.stretch, layout, signal, { limit: toSkip });
        if (before < toSkip) {
          toSkip -= before;
          ranges = lower;
          continue;
        }
      }
      const reply = await this.#finder.range(range, limit, toSkip, layout, signal);
      toSkip = 0;
      const { rows, left } = gathering.take(reply, range.bookmark);
      if ((left || reply.cut) && gathering.isFull) return true;
      if (left || reply.cut || rows === limit) {
        const rest = rangesOf(plan, gathering.last ?? after, layout.clustered);
        ranges = gathering.rows > before ? rest : rest.map(withoutBookmark);
        continue;
      }
      if (lower.length === 0) return false;
      if (range.floor && !(await this.#finder.isAnyBelow(range, layout, signal))) return false;
      ranges = lower;
    }
    return false;
  }

  /** One row more than wanted, which tells whether there are more; and one for the bookmark's, which comes first. */
  #limit({ rows, bytes, missing }: Gathering, { bookmark }: Range): number {
    const rowBytes = rows > 0 ? bytes / rows : this.#rowBytes;
    const enough = Math.max(0, Math.ceil((missing.bytes / rowBytes) * MARGIN));
    return Math.min(missing.rows, enough) + 1 + (bookmark ? 1 : 0);
  }
}

/**
 * The range without its bookmark's row. When that row and the next one do not fit one reply of 16 MB, the reply is the
 * bookmark's row alone, again and again; so the server leaves it out. Not always done so: it makes a scan 5 to 20 % slower.
 */
function withoutBookmark({ bookmark, ...range }: Range): Range {
  if (!bookmark) return range;
  const others = { _id: { $ne: keyOf(bookmark)._id } };
  return { ...range, filter: range.filter ? { $and: [range.filter, others] } : others };
}

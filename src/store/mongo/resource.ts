import type { Batch } from '../batch.ts';
import { KEY, valueBookmarkOf, type Bookmark, type Identity, type PointInTime } from '../bookmark.ts';
import { documentAt, endOfRow } from '../bson-array.ts';
import type { Index } from '../indexes.ts';
import type { ChangeFeed } from '../change-feed.ts';
import type { Slots } from '../slots.ts';
import type {
  AddedIndex,
  Count,
  CountMode,
  Declaration,
  Equality,
  From,
  InsertResult,
  OnConflict,
  OwnedCollection,
  Plan,
  Size,
} from '../store.ts';
import type { Layout } from './collection.ts';
import type { Finder } from './find.ts';
import { shapeOf, type IndexedPlan } from './index-ranges.ts';
import type { IndexWatch } from './index-watch.ts';
import type { MongoItems } from './items.ts';
import { commandKey } from './key.ts';
import { indexOf, namedIndex } from './plan.ts';
import { bracketCondition, conditionOf, conditionsOf, type Condition } from './predicates.ts';
import type { Setup } from './setup.ts';
import { readSingle } from './single.ts';
import { withKey } from './missing-indexes.ts';
import { inPresentCollection } from './outdated.ts';
import type { MakeIndexes } from './postpone-indexes.ts';
import { bracketsFrom } from './type-brackets.ts';

/** A collection of any shape. Its rows are read as items are, by whichever index a plan names. */
export class MongoCollection implements OwnedCollection {
  readonly indexesFirst = false;
  readonly changes?: ChangeFeed;
  readonly #rows: MongoItems;
  readonly #setup: Setup;
  readonly #watch: IndexWatch;
  readonly #finder: Finder;
  readonly #slots: Slots;
  readonly #declaration: Pick<Declaration, 'indexes' | 'refusalOf'>;

  constructor(
    rows: MongoItems,
    setup: Setup,
    watch: IndexWatch,
    finder: Finder,
    slots: Slots,
    declaration: Pick<Declaration, 'indexes' | 'refusalOf'>,
  ) {
    if (rows.changes) this.changes = rows.changes;
    this.#declaration = declaration;
    this.#rows = rows;
    this.#setup = setup;
    this.#watch = watch;
    this.#finder = finder;
    this.#slots = slots;
  }

  async read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<Batch> {
    if (!isSingle(plan)) return this.#rows.read(plan, from, size, signal);
    signal.throwIfAborted();
    try {
      return await inPresentCollection(plan.identity, signal, () =>
        this.#readSingle(plan, from, size, signal),
      );
    } catch (error) {
      throw await this.#watch.orReplaced(error, plan.identity, signal);
    }
  }

  confirm(batch: Pick<Batch, 'readBy'>, plan: Plan, signal: AbortSignal): Promise<void> {
    return this.#rows.confirm(batch, plan, signal);
  }

  get(id: Bookmark, signal: AbortSignal): Promise<Batch | null> {
    return this.#rows.get(id, signal);
  }

  identity(signal: AbortSignal): Promise<Identity | undefined> {
    return this.#rows.identity(signal);
  }

  async count(plan: Plan, mode: CountMode, signal: AbortSignal): Promise<Count> {
    if (!isSingle(plan)) return this.#rows.count(plan, mode, signal);
    const batch = await this.read(plan, {}, { rows: 1, bytes: 1 }, signal);
    batch.release();
    return { rows: batch.rows, is: 'exact' };
  }

  async split(plan: Plan, parts: number, signal: AbortSignal): Promise<readonly Bookmark[]> {
    return isSingle(plan) ? [] : this.#rows.split(plan, parts, signal);
  }

  pointInTime(signal: AbortSignal): Promise<PointInTime | null> {
    return this.#rows.pointInTime(signal);
  }

  insert(rows: readonly Uint8Array[], onConflict: OnConflict): Promise<InsertResult> {
    return this.#rows.insert(rows, onConflict, this.#declaration.refusalOf);
  }

  remove(keys: readonly Bookmark[]): Promise<number> {
    return this.#rows.remove(keys);
  }

  clear(signal: AbortSignal): Promise<Count> {
    return this.#rows.clear(signal);
  }

  async addIndex(paths: readonly string[], _: unknown, signal: AbortSignal): Promise<AddedIndex> {
    const added = await this.#rows.addIndex(paths, signal);
    this.#setup.forget();
    return added;
  }

  postponeIndexes(): Promise<MakeIndexes | null> {
    return this.#rows.postponeIndexes(this.#declaration.indexes.map(withKey));
  }

  async indexes(signal: AbortSignal): Promise<readonly Index[]> {
    return (await this.#setup.layout(signal)).found;
  }

  async holds(
    index: Index,
    equals: readonly Equality[],
    bracket: number | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const next = index.keys[equals.length];
    if (bracket !== undefined && !next) throw new TypeError(`${index.name} has no field behind these values`);
    const asked = next && bracket !== undefined ? { [next.path]: bracketCondition(bracket) } : {};
    const found = await this.#first(index, { ...conditionsOf(equals), ...asked }, KEY, 1, signal);
    return found !== null;
  }

  /**
   * Reads on within the type bracket of `after`, then in the brackets above it: a comparison never leaves its bracket.
   * Values that no query can name are left out: MinKey, MaxKey, undefined, regular expressions and DBPointers.
   */
  async nextValue(
    index: Index,
    equals: readonly Equality[],
    after: Bookmark | null,
    signal: AbortSignal,
  ): Promise<Bookmark | null> {
    const next = index.keys[equals.length];
    if (!next) throw new TypeError(`${index.name} has no field behind these values`);
    const { path, sign } = next;
    const prefix = conditionsOf(equals);
    const last = after && (commandKey(after) as Readonly<Record<string, unknown>>)[path];
    const [own, ...higher] = bracketsFrom(after ? (after[4] ?? 0) : null, last);
    const conditions: Condition[] = [
      ...(after && !own?.alone ? [{ $gt: last }] : []),
      ...(after ? higher : [...(own ? [own] : []), ...higher]).map(({ lowest, alone }) =>
        alone ? conditionOf(lowest) : { $gte: lowest },
      ),
    ];
    for (const condition of conditions) {
      const found = await this.#first(index, { ...prefix, [path]: condition }, path, sign, signal);
      if (found) return found;
    }
    const { specs, identity } = await this.#watch.layoutFor(namedIndex(index), signal);
    await this.#watch.confirm(namedIndex(index), specs.get(namedIndex(index)), identity, signal);
    return null;
  }

  /** The first row that matches, as the value of a path. `direction`: of the walk along the index. */
  async #first(
    index: Index,
    filter: Condition,
    path: string,
    direction: 1 | -1,
    signal: AbortSignal,
  ): Promise<Bookmark | null> {
    const named = namedIndex(index);
    const sort = Object.fromEntries(
      index.keys.map((key) => [key.path, direction === 1 ? key.sign : (-key.sign as 1 | -1)]),
    );
    const range = { index: named, sort, isForward: direction === 1, filter };
    const { slot, start, length } = await inPresentCollection(undefined, signal, async () =>
      this.#finder.values(range, path, 1, await this.#watch.layoutFor(named, signal), signal),
    );
    const bytes = slot.bytes(start + length).subarray(start);
    const found =
      length > 0 ? valueBookmarkOf(bytes.slice(documentAt(bytes, 0), endOfRow(bytes, 0)), path) : null;
    slot.release();
    return found;
  }

  async #readSingle(plan: IndexedPlan, from: From, size: Size, signal: AbortSignal): Promise<Batch> {
    const index = indexOf(plan);
    const layout = await this.#watch.layoutFor(index, signal);
    const looking = this.#watch.recent(index);
    const batch = await readSingle(plan, from, size, this.#parts(layout), signal);
    try {
      const readBy = layout.specs.get(index);
      if (looking) await looking;
      await this.#watch.check(index, readBy, signal);
      const identity = plan.identity ?? layout.identity;
      return {
        ...batch,
        ...(readBy !== undefined && { readBy }),
        ...(identity !== undefined && { identity }),
      };
    } catch (error) {
      batch.release();
      throw error;
    }
  }

  #parts(layout: Layout) {
    return { finder: this.#finder, slots: this.#slots, layout };
  }
}

function isSingle(plan: Plan): plan is IndexedPlan {
  return plan.index !== undefined && shapeOf(plan as IndexedPlan) === 'single';
}

import type { ReadBatch } from '../batch.ts';
import { KEY, type Bookmark, type Identity } from '../bookmark.ts';
import { collectionReplaced, storeUnfit } from '../../errors.ts';
import type { ChangeFeed } from '../change-feed.ts';
import type { Index } from '../indexes.ts';
import type {
  AddedIndex,
  Count,
  CountMode,
  Declaration,
  Description,
  Equality,
  From,
  InsertResult,
  OnConflict,
  OwnedCollection,
  Plan,
  Size,
  ValuesFrom,
} from '../store.ts';
import { replaceByEmpty } from './clear.ts';
import type { Layout } from './create-collection.ts';
import { countRows } from './count.ts';
import { faultOf, inPresentCollection } from './faults.ts';
import { isSingle } from './index-ranges.ts';
import { insertRows } from './insert.ts';
import { commandKey } from './bookmark-in-command.ts';
import { addIndex, postponeIndexes, withKey, type MakeIndexes } from './make-indexes.ts';
import type { IndexedPlan } from './plan.ts';
import { bracketCondition, conditionOf, type Condition } from './predicates.ts';
import { deleteRaw } from './raw-write.ts';
import { Reads, type ReadParts } from './read.ts';
import { presentTime } from './snapshot.ts';
import { splitRows } from './split.ts';
import { bracketsFrom } from './type-brackets.ts';

/** What a collection of MongoDB is made of. */
export interface MongoCollectionParts extends ReadParts {
  readonly declaration: Pick<Declaration, 'indexes' | 'refusalOf'>;
  readonly changes?: ChangeFeed;
}

export class MongoCollection implements OwnedCollection {
  readonly indexesFirst = false;
  readonly changes?: ChangeFeed;
  readonly #parts: MongoCollectionParts;
  readonly #reads: Reads;
  /** The collection that the first rows were written into. An import does not continue in another collection. */
  #writtenTo: Identity | undefined;

  constructor(parts: MongoCollectionParts) {
    if (parts.changes) this.changes = parts.changes;
    this.#parts = parts;
    this.#reads = new Reads(parts);
  }

  close(): void {
    this.#parts.layouts.close();
  }

  read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<ReadBatch> {
    return this.#reads.read(plan, from, size, signal);
  }

  async describe(signal: AbortSignal, { now = false } = {}): Promise<Description> {
    const { layouts } = this.#parts;
    if (!now) return layouts.layout(signal);
    signal.throwIfAborted();
    const { connection, collection } = layouts;
    return inPresentCollection(undefined, signal, async () => {
      const layout = await layouts.layout(signal); // a collection that does not exist yet has no time
      try {
        return { ...layout, now: await presentTime(connection, collection, layout.identity, signal) };
      } catch (error) {
        throw faultOf(error, layouts, {});
      }
    });
  }

  async count(plan: Plan, mode: CountMode, signal: AbortSignal): Promise<Count> {
    if (plan.ids)
      throw new TypeError('no query says a range of ids of several types: it is read, not counted');
    return this.#inLayout(plan, signal, async (layout, indexed) => {
      if (!isSingle(indexed)) return countRows(this.#parts.layouts, indexed, mode, layout, signal);
      const batch = await this.read(plan, {}, { rows: 1, bytes: 1 }, signal);
      batch.release();
      return { rows: batch.rows, is: 'exact' };
    });
  }

  split(plan: Plan, parts: number, signal: AbortSignal): Promise<readonly Bookmark[]> {
    return this.#inLayout(plan, signal, async (layout, indexed) =>
      isSingle(indexed) ? [] : splitRows(this.#parts, indexed, parts, layout, signal),
    );
  }

  /**
   * Reads on within the type bracket of `after`, then in the brackets above it: a comparison never leaves its bracket. An
   * answer about one bracket alone is for the kinds of a field, which are known for no longer than the layout.
   * Values that no query can name are left out: MinKey, MaxKey, undefined, regular expressions and DBPointers.
   */
  async nextValue(
    index: Index,
    equals: readonly Equality[],
    { after = null, bracket }: ValuesFrom,
    signal: AbortSignal,
  ): Promise<Bookmark | null> {
    const next = index.keys[equals.length];
    if (!next) throw new TypeError(`${index.name} has no field behind these values`);
    const { path, sign } = next;
    const plan = { index, equals, sort: path, direction: sign };
    if (bracket !== undefined) return this.#reads.first(plan, bracketCondition(bracket), signal);
    const last = after && (commandKey(after) as Readonly<Record<string, unknown>>)[path];
    const brackets = bracketsFrom(after ? (after[4] ?? 0) : null, last);
    const conditions: Condition[] = [
      ...(after && !brackets[0]?.alone ? [{ $gt: last }] : []),
      ...brackets
        .slice(after ? 1 : 0)
        .map(({ lowest, alone }) => (alone ? conditionOf(lowest) : { $gte: lowest })),
    ];
    for (const condition of conditions) {
      const found = await this.#reads.first(plan, condition, signal);
      if (found) return found;
    }
    const { layouts } = this.#parts;
    const [{ identity }] = await layouts.layoutFor(plan, signal);
    await layouts.confirm(index, identity, true, signal);
    return null;
  }

  /** A write cannot name the identity of its collection, and creates a missing one: it is checked before and after. */
  async insert(rows: readonly Uint8Array[], onConflict: OnConflict): Promise<InsertResult> {
    const { layouts, declaration } = this.#parts;
    const { connection, collection } = layouts;
    const identity = await layouts.present();
    this.#writtenTo ??= identity;
    if (this.#writtenTo !== identity) throw collectionReplaced();
    const result = await insertRows(connection, collection, rows, onConflict, declaration.refusalOf);
    if ((await layouts.present()) !== identity) throw collectionReplaced();
    return result;
  }

  /** A write cannot name the identity of its collection, so it is checked before and after. */
  async remove(keys: readonly Bookmark[]): Promise<number> {
    const { layouts } = this.#parts;
    const identity = await layouts.present();
    const rows = await deleteRaw(layouts.connection, layouts.collection, keys);
    if ((await layouts.present()) !== identity) throw collectionReplaced();
    return rows;
  }

  async postponeIndexes(): Promise<MakeIndexes | null> {
    const { layouts, declaration } = this.#parts;
    const { sharded } = await layouts.layout();
    if (sharded || !layouts.manages) return null;
    const { connection, collection } = layouts;
    const make = await postponeIndexes(connection, collection, declaration.indexes.map(withKey));
    if (make) layouts.close(); // it would make them at its next look
    return make;
  }

  async addIndex(paths: readonly string[], _: unknown, signal: AbortSignal): Promise<AddedIndex> {
    const { layouts } = this.#parts;
    const added = await addIndex(layouts.connection, layouts.collection, paths, signal);
    layouts.forget();
    return added;
  }

  async clear(signal: AbortSignal): Promise<Count> {
    const { layouts } = this.#parts;
    const { connection, collection } = layouts;
    const layout = await layouts.layout(signal);
    if (layout.sharded)
      throw storeUnfit(`The collection '${collection}' may be sharded. Such a collection is not replaced.`);
    const count = await this.count({ sort: KEY, direction: 1 }, 'exact', signal);
    signal.throwIfAborted();
    try {
      await replaceByEmpty(connection, collection);
    } finally {
      layouts.forget(layout);
      this.#writtenTo = undefined; // the next rows go into the new collection
    }
    return count;
  }

  async #inLayout<T>(
    plan: Plan,
    signal: AbortSignal,
    work: (layout: Layout, plan: IndexedPlan) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    return inPresentCollection(plan.identity, signal, async () =>
      work(...(await this.#parts.layouts.layoutFor(plan, signal))),
    );
  }
}

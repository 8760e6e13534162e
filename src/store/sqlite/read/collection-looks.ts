import { collectionReplaced, storeUnfit } from '../../../base/errors.ts';
import type { Identity } from '../../bookmark.ts';
import type { From, Plan } from '../../store.ts';
import type { Core } from '../core.ts';
import type { Indexes } from '../write/indexes.ts';
import { indexFor, isByKey, isSingle, rangeOf, readByOf, type Range } from './range.ts';
import { indexOf, type CollectionRecord, type CollectionShape } from '../file/collections.ts';

/** Entries of an index that one look passes over: about 2 ms. */
export const PASSED_AT_ONCE = 40_000;

/** The tables of a collection, or the order of its rows, are others than when its read began. */
class ReplacedError extends Error {}

/** What reads look at: the file as it is (the core), or one state of it. */
export type LookParts = Pick<Core, 'looks' | 'reader' | 'log' | 'collections' | 'background'>;

/** Looks at one collection of the file. */
export class CollectionLooks<In extends LookParts = Core> {
  readonly core: In;
  readonly shape: CollectionShape;
  readonly #indexes: Pick<Indexes, 'buildLater'>;

  constructor(core: In, shape: CollectionShape, indexes: Pick<Indexes, 'buildLater'>) {
    this.core = core;
    this.shape = shape;
    this.#indexes = indexes;
  }

  /** In a look: the collection as it is. */
  current(identity?: Identity): CollectionRecord {
    const collection = this.core.collections.get(this.shape.name, identity);
    this.#indexes.buildLater(collection);
    return collection;
  }

  /** In a look: the collection as it is, which must be of the plan's identity, and its index for the plan usable. */
  present(plan: Plan): CollectionRecord {
    this.core.background.assertFit();
    const collection = this.current(plan.identity);
    if (plan.identity !== undefined && plan.identity !== collection.identity) throw collectionReplaced();
    if (isByKey(plan) || isSingle(plan)) return collection;
    const index = indexFor(collection, plan);
    if (!index) throw storeUnfit(`The resource ${collection.label} has no index ${readByOf(plan)}.`);
    const { refused } = indexOf(index);
    if (refused !== undefined)
      throw storeUnfit(`The index ${readByOf(plan)} of ${collection.label} cannot be used: ${refused}.`);
    return collection;
  }

  /** Runs looks that are all of one identity: when the rows are removed between them, `work` begins anew. */
  async within<T>(plan: Plan, signal: AbortSignal, work: (looks: SteadyLooks) => T | Promise<T>): Promise<T> {
    for (;;)
      try {
        return await work(new SteadyLooks(this, plan, signal));
      } catch (error) {
        if (!(error instanceof ReplacedError)) throw error;
      }
  }
}

/** Looks of one read, which all see the collection that the first one saw. */
export class SteadyLooks {
  readonly #looks: CollectionLooks<LookParts>;
  readonly #plan: Plan;
  readonly #signal: AbortSignal;
  #first: CollectionRecord | null = null;

  constructor(looks: CollectionLooks<LookParts>, plan: Plan, signal: AbortSignal) {
    this.#looks = looks;
    this.#plan = plan;
    this.#signal = signal;
  }

  /** Looks when its turn comes. See Looks. */
  take<T>(look: (collection: CollectionRecord) => T, isPatient?: boolean): Promise<T> {
    const lookAt = (): T => {
      const collection = this.#looks.present(this.#plan);
      if (isOther(collection, (this.#first ??= collection))) throw new ReplacedError();
      return look(collection);
    };
    return this.#looks.core.looks.take(lookAt, this.#signal, isPatient);
  }

  /** The range of the plan. */
  range(after?: From['after']): Promise<Range | null> {
    return this.take((collection) => rangeOf(collection, this.#plan, after));
  }

  /**
   * Passes over at most `most` rows of a range in bounded looks. Returns what is behind: null when there is no more.
   */
  async pass(
    range: Range | null,
    most: number,
    mayGoOn: () => boolean = () => true,
  ): Promise<{ readonly rows: number; readonly rest: Range | null }> {
    let rest = range;
    let rows = 0;
    while (rest && rows < most && (rows === 0 || mayGoOn())) {
      const next: Range = rest;
      const some: number = Math.min(most - rows, PASSED_AT_ONCE);
      const passed = await this.take(() => this.#looks.core.reader.pass(next, some));
      rest = passed.rest;
      rows += passed.rows;
    }
    return { rows, rest };
  }
}

/** Whether batches of one are read in another way than those of the other. */
function isOther(one: CollectionRecord, other: CollectionRecord): boolean {
  return (
    one.number !== other.number ||
    one.identity !== other.identity ||
    one.isInOrder !== other.isInOrder ||
    one.hasLargeRows !== other.hasLargeRows
  );
}

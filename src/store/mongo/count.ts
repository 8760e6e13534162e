import { AppError } from '../../errors.ts';
import type { Layout } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { UUID } from '../bson.ts';
import { CODES, codeOf } from './errors.ts';
import { faultOf } from './faults.ts';
import { indexOf } from './plan.ts';
import type { Setup } from './setup.ts';
import type { Count, CountMode, Plan } from '../store.ts';

/** How long exact counting may take the server: some million index entries. */
const EXACT_LIMIT_MS = 2_000;
/** An estimate counts as many index entries (2 to 5 ms), and samples only when there are more. */
const COUNTED = 10_000;
/**
 * Rows drawn at random, whatever the collection's size. A share in them has a standard error of 1.6 % of the collection
 * at most, so that an estimate is nearly always within 3.2 % of it.
 */
const SAMPLE = 1_000;

/** Counts the items of a plan in a MongoDB collection. */
export class Counter {
  readonly #connection: MongoConnection;
  readonly #setup: Setup;

  constructor(connection: MongoConnection, setup: Setup) {
    this.#connection = connection;
    this.#setup = setup;
  }

  /** See ItemStore.count. When exact counting is out of time, the answer is an estimate and says so. */
  async count(plan: Plan, mode: CountMode, layout: Layout, signal: AbortSignal): Promise<Count> {
    try {
      const count = await this.#count(plan, mode, layout, signal);
      await this.#checkIdentity(plan.identity ?? layout.identity, signal);
      return count;
    } catch (error) {
      throw faultOf(error, this.#setup, plan);
    }
  }

  /** A collection that is gone has 0 rows to the server, and `count` takes no `collectionUUID`: so one row is asked for after it. */
  async #checkIdentity(identity: string | undefined, signal: AbortSignal): Promise<void> {
    if (identity === undefined) return;
    const one = { find: this.#setup.collection, projection: { _id: 1 }, limit: 1, singleBatch: true };
    await this.#connection.run({ ...one, collectionUUID: new UUID(identity) }, { signal });
  }

  async #count(plan: Plan, mode: CountMode, layout: Layout, signal: AbortSignal): Promise<Count> {
    const match = matchOf(plan);
    if (mode === 'exact') {
      try {
        return { rows: await this.#exactly(plan, match, layout, signal), is: 'exact' };
      } catch (error) {
        if (!isOutOfTime(error)) throw error;
      }
    }
    return match ? this.#estimate(plan, match, layout, signal) : this.#total(signal);
  }

  async #exactly(plan: Plan, match: Match | null, layout: Layout, signal: AbortSignal): Promise<number> {
    if (match) return this.#countIndex(plan, match, layout, EXACT_LIMIT_MS, undefined, signal);
    // `count` without a query would take the number from the collection's metadata, which a crash leaves inexact.
    return this.#aggregate([{ $count: 'rows' }], EXACT_LIMIT_MS, signal);
  }

  /** Few rows are counted; of many the share in a sample is taken of the collection's size. */
  async #estimate(plan: Plan, match: Match, layout: Layout, signal: AbortSignal): Promise<Count> {
    const counted = await this.#countIndex(plan, match, layout, undefined, COUNTED + 1, signal);
    if (counted <= COUNTED) return { rows: counted, is: 'exact' };
    const sample = [{ $sample: { size: SAMPLE } }, { $match: match }, { $count: 'rows' }];
    const hits = await this.#aggregate(sample, undefined, signal);
    const { rows: total } = await this.#total(signal);
    return { rows: Math.max(counted, Math.round((hits / SAMPLE) * total)), is: 'estimated' };
  }

  /** From the collection's metadata: at once, and exact but for what a crash or an open transaction leaves out. */
  async #total(signal: AbortSignal): Promise<Count> {
    const { n } = await this.#connection.run({ count: this.#setup.collection }, { signal });
    return { rows: Number(n), is: 'estimated' };
  }

  /** The bounds are one stretch of the plan's index, so that entries are counted and no row is looked at (COUNT_SCAN). */
  async #countIndex(
    plan: Plan,
    query: Match,
    layout: Layout,
    limitMs: number | undefined,
    limit: number | undefined,
    signal: AbortSignal,
  ): Promise<number> {
    const hint = layout.indexes[indexOf(plan)];
    const count = { count: this.#setup.collection, query, hint, ...(limit !== undefined && { limit }) };
    const { n } = await this.#connection.run(count, { signal, ...(limitMs !== undefined && { limitMs }) });
    return Number(n);
  }

  async #aggregate(
    pipeline: readonly Record<string, unknown>[],
    limitMs: number | undefined,
    signal: AbortSignal,
  ): Promise<number> {
    const command = { aggregate: this.#setup.collection, pipeline, cursor: {} };
    const options = { signal, ...(limitMs !== undefined && { limitMs }) };
    const { cursor } = await this.#connection.run(command, options);
    const [found] = (cursor as { firstBatch: { rows: number }[] }).firstBatch;
    return found ? found.rows : 0;
  }
}

type Match = Readonly<Record<string, unknown>>;

/** A plan's filter as a query; null when it has none. Comparisons see numbers only, which is what a price range means. */
function matchOf({ category, minPrice, maxPrice }: Plan): Match | null {
  const price = {
    ...(minPrice !== undefined && { $gte: minPrice }),
    ...(maxPrice !== undefined && { $lte: maxPrice }),
  };
  const ranged = Object.keys(price).length > 0;
  if (category === undefined && !ranged) return null;
  return { ...(category !== undefined && { category: { $eq: category } }), ...(ranged && { price }) };
}

function isOutOfTime(error: unknown): boolean {
  return error instanceof AppError && codeOf(error.cause) === CODES.maxTimeExpired;
}

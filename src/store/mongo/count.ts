import { AppError } from '../../errors.ts';
import type { Layout } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { UUID } from '../bson.ts';
import { CODES, serverCodeOf } from './errors.ts';
import { faultOf } from './faults.ts';
import { BY_KEY, indexOf } from './plan.ts';
import type { Layouts } from './layouts.ts';
import type { Count, CountMode, Plan } from '../store.ts';
import { conditionsOf, rangeCondition } from './predicates.ts';

/** How long the server may count exactly: enough for some million index entries. */
const EXACT_LIMIT_MS = 2_000;
/** Where it does not count all, it counts up to this many index entries (2 to 5 ms). */
const COUNTED = 10_000;

/** Counts the items of a plan in a MongoDB collection. */
export class Counter {
  readonly #connection: MongoConnection;
  readonly #layouts: Layouts;

  constructor(connection: MongoConnection, layouts: Layouts) {
    this.#connection = connection;
    this.#layouts = layouts;
  }

  /** See RowStore.count. When the time for exact counting is up, the count is as if it was not asked to be exact. */
  async count(plan: Plan, mode: CountMode, layout: Layout, signal: AbortSignal): Promise<Count> {
    try {
      const count = await this.#count(plan, mode, layout, signal);
      await this.#checkIdentity(plan.identity ?? layout.identity, layout.indexes.get(BY_KEY), signal);
      return count;
    } catch (error) {
      throw faultOf(error, this.#layouts, plan);
    }
  }

  /**
   * The server counts 0 rows in a missing collection, and `count` accepts no `collectionUUID`. So a read of one row
   * after the count checks the identity.
   */
  async #checkIdentity(
    identity: string | undefined,
    hint: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (identity === undefined) return;
    const one = { find: this.#layouts.collection, hint, projection: { _id: 1 }, limit: 1, singleBatch: true };
    await this.#connection.run({ ...one, collectionUUID: new UUID(identity) }, { signal });
  }

  async #count(plan: Plan, mode: CountMode, layout: Layout, signal: AbortSignal): Promise<Count> {
    if (mode === 'exact') {
      try {
        return { rows: await this.#exactly(plan, layout, signal), is: 'exact' };
      } catch (error) {
        if (!isOutOfTime(error)) throw error;
      }
    }
    if (isWhole(plan)) return this.#total(signal);
    const rows = await this.#countPlan(plan, layout, { limit: COUNTED + 1 }, signal);
    return { rows, is: rows > COUNTED ? 'atLeast' : 'exact' };
  }

  async #exactly(plan: Plan, layout: Layout, signal: AbortSignal): Promise<number> {
    if (!isWhole(plan)) return this.#countPlan(plan, layout, { limitMs: EXACT_LIMIT_MS }, signal);
    // `count` without a query takes the number from the collection's metadata, which is inexact after a crash.
    // By an index that the plan names it counts entries, and without one it walks the rows.
    const hint = plan.index && layout.indexes.get(indexOf(plan));
    return this.#aggregate([{ $count: 'rows' }], EXACT_LIMIT_MS, signal, hint);
  }

  /** From the collection's metadata: fast, and exact except for the effects of a crash or an open transaction. */
  async #total(signal: AbortSignal): Promise<Count> {
    const { n } = await this.#connection.run({ count: this.#layouts.collection }, { signal });
    return { rows: Number(n), is: 'estimated' };
  }

  /**
   * The number of rows of a plan that is not the whole collection. The query's bounds are one stretch of the plan's index,
   * so the server counts entries and reads no row (COUNT_SCAN).
   */
  async #countPlan(
    plan: Plan,
    layout: Layout,
    { limit, limitMs }: CountBounds,
    signal: AbortSignal,
  ): Promise<number> {
    const hint = layout.indexes.get(indexOf(plan));
    const query = matchOf(plan);
    const count = { count: this.#layouts.collection, query, hint, ...(limit !== undefined && { limit }) };
    const { n } = await this.#connection.run(count, { signal, ...(limitMs !== undefined && { limitMs }) });
    return Number(n);
  }

  async #aggregate(
    pipeline: readonly Record<string, unknown>[],
    limitMs: number | undefined,
    signal: AbortSignal,
    hint?: string,
  ): Promise<number> {
    const named = hint !== undefined && { hint };
    const command = { aggregate: this.#layouts.collection, pipeline, cursor: {}, ...named };
    const options = { signal, ...(limitMs !== undefined && { limitMs }) };
    const { cursor } = await this.#connection.run(command, options);
    const [found] = (cursor as { firstBatch: { rows: number }[] }).firstBatch;
    return found ? found.rows : 0;
  }
}

type Match = Readonly<Record<string, unknown>>;

/** The most rows to count, and the most milliseconds to take. */
interface CountBounds {
  readonly limit?: number;
  readonly limitMs?: number;
}

function isWhole(plan: Plan): boolean {
  return !plan.equals?.length && !plan.range;
}

/** A plan as a query. Comparisons match values of one type bracket only, which is what a range means. */
function matchOf({ equals = [], range, sort }: Plan): Match {
  return { ...conditionsOf(equals), ...(range && { [sort]: rangeCondition(range) }) };
}

function isOutOfTime(error: unknown): boolean {
  return error instanceof AppError && serverCodeOf(error.cause) === CODES.maxTimeExpired;
}

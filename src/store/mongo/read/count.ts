import { findOne } from '../commands.ts';
import type { Layout } from '../collection/create-collection.ts';
import type { CommandOptions } from '../connection.ts';
import type { Document } from '../../values/bson.ts';
import { CODES, serverCodeOf } from '../errors.ts';
import { faultOf } from '../faults.ts';
import { hintOf, type IndexedPlan } from '../plan.ts';
import type { Layouts } from '../collection/layouts.ts';
import type { Count, CountMode, Plan } from '../../store.ts';
import { conditionsOf, rangeCondition } from './predicates.ts';

/** How long the server may count exactly: enough for some million index entries. */
const EXACT_LIMIT_MS = 2_000;
/** Where it does not count all, it counts up to this many index entries (2 to 5 ms). */
const COUNTED = 10_000;

/** See Collection.count. When the time for exact counting is up, the count is as if it was not asked to be exact. */
export async function countRows(
  layouts: Layouts,
  plan: IndexedPlan,
  mode: CountMode,
  layout: Layout,
  signal: AbortSignal,
): Promise<Count> {
  const { collection, connection } = layouts;
  const hint = hintOf(plan.index);
  const run = (command: Document, options: CommandOptions = {}) =>
    connection.run(command, { signal, ...options });
  // The query's bounds are one stretch of the plan's index, so the server counts entries and reads no row (COUNT_SCAN).
  // Without a hint it takes the number of all rows from the metadata, which is inexact after a crash.
  const counted = async (options: Document, limits?: CommandOptions): Promise<number> =>
    Number((await run({ count: collection, query: matchOf(plan), hint, ...options }, limits)).n);
  const nearly = async (): Promise<Count> => {
    // From the metadata: fast, and exact except for the effects of a crash or an open transaction.
    if (isWhole(plan)) return { rows: Number((await run({ count: collection })).n), is: 'estimated' };
    const rows = await counted({ limit: COUNTED + 1 });
    return { rows, is: rows > COUNTED ? 'atLeast' : 'exact' };
  };
  try {
    const exact =
      mode === 'exact' ? await counted({}, { limitMs: EXACT_LIMIT_MS }).catch(unlessOutOfTime) : undefined;
    const count: Count = exact === undefined ? await nearly() : { rows: exact, is: 'exact' };
    // The server counts 0 rows in a missing collection, and `count` accepts no `collectionUUID`. A read after it does.
    await run({ ...findOne(collection, plan.identity ?? layout.identity), hint });
    return count;
  } catch (error) {
    throw faultOf(error, layouts, plan);
  }
}

function isWhole(plan: Plan): boolean {
  return !plan.equals?.length && !plan.range;
}

/** A plan as a query. Comparisons match values of one type bracket only, which is what a range means. */
function matchOf({ equals = [], range, sort }: Plan): Document {
  return { ...conditionsOf(equals), ...(range && { [sort]: rangeCondition(range) }) };
}

function unlessOutOfTime(error: unknown): undefined {
  if (serverCodeOf(error) !== CODES.maxTimeExpired) throw error;
}

import type { ReadBatch } from './batch.ts';
import type { ChangeFeed } from './change-feed.ts';
import type { Index } from './indexes.ts';
import { predicateOf, type Scope } from './scope-predicate.ts';
import { scopedFeed } from './scoped-feed.ts';
import type { Collection, Equality, Plan, Size } from './store.ts';

const ONE: Size = { rows: 1, bytes: 1 };

/** Resolves with the index that orders the rows of a plan with values of these paths. Rejects when there is none. */
export type IndexFor = (equals: readonly string[], plan: Plan, signal: AbortSignal) => Promise<Index>;

/**
 * The rows of a collection that have these values: the part that a key opens. The plans of its readers lack the values.
 * They get them here and nowhere else, and `atEdge` lets no other plan through to the store.
 */
export function partRows(rows: Collection, scope: Scope, indexFor: IndexFor): Collection {
  const { where } = scope;
  const atEdge = edgeOf(where);
  /** The one place where the values of a part are added to what is asked. */
  const within = <P extends Pick<Plan, 'equals'>>(plan: P) => ({
    ...plan,
    equals: [...where, ...(plan.equals ?? [])],
  });
  const narrowed = async (plan: Plan, signal: AbortSignal): Promise<Plan> => {
    const { equals, ...rest } = within(plan);
    if (equals.length === 0) return plan;
    const paths = equals.map(({ path }) => path);
    const index = plan.index ?? (await indexFor(paths, plan, signal));
    return { ...rest, index, equals: inOrderOf(index, equals) };
  };
  let changes: ChangeFeed | null | undefined;
  return {
    async read(plan, from, size, signal): Promise<ReadBatch> {
      const mine = atEdge(await narrowed(plan, signal));
      if (!plan.isEmpty) return rows.read(mine, from, size, signal);
      const batch = await rows.read(mine, {}, ONE, signal);
      return { ...batch, rows: 0, length: 0, last: null, more: false };
    },
    async count(plan, mode, signal) {
      if (plan.isEmpty) return { rows: 0, is: 'exact' };
      return rows.count(atEdge(await narrowed(plan, signal)), mode, signal);
    },
    async split(plan, parts, signal) {
      return plan.isEmpty ? [] : rows.split(atEdge(await narrowed(plan, signal)), parts, signal);
    },
    async nextValue(index, equals, from, signal) {
      const mine = atEdge(within({ equals }));
      return rows.nextValue(index, inOrderOf(index, mine.equals), from, signal);
    },
    describe: (...call) => rows.describe(...call),
    /** Made when somebody asks for it: there may be many parts. */
    get changes() {
      if (changes !== undefined) return changes ?? undefined;
      const log = rows.changes?.within?.(predicateOf(scope));
      changes = log ? scopedFeed(log, within, atEdge) : null;
      return changes ?? undefined;
    },
  };
}

/**
 * Passes a plan on that has the very values of the part, and no other one of their paths. A plan without them is a
 * mistake of this server, and fails.
 */
function edgeOf(where: readonly Equality[]) {
  return <P extends Pick<Plan, 'equals'>>(plan: P): P => {
    const { equals = [] } = plan;
    const has = (own: Equality) =>
      equals.includes(own) && equals.every((one) => one === own || one.path !== own.path);
    if (where.every(has)) return plan;
    throw new TypeError('a read outside the part that a key opens');
  };
}

/** Equalities in the order of an index. Those that it lacks are behind. */
function inOrderOf({ keys }: Index, equals: readonly Equality[]): readonly Equality[] {
  const placeOf = ({ path }: Equality) => {
    const place = keys.findIndex((key) => key.path === path);
    return place < 0 ? keys.length : place;
  };
  return equals.toSorted((a, b) => placeOf(a) - placeOf(b));
}

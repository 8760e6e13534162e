import { KEY, bookmarkOf, type Bookmark } from './bookmark.ts';
import { documentOf, orRelease, type Batch } from './batch.ts';
import { comparePlaces } from './order.ts';
import type { Part } from './change-feed.ts';
import { ScopedFeed } from './scoped-feed.ts';
import type { Collection, CountMode, Equality, From, Plan, RowStore, Size } from './store.ts';

const ONE: Size = { rows: 1, bytes: 1 };
const BY_KEY = { sort: KEY, direction: 1 } as const;

/** Adds the values of a part to a plan without any. */
export type Narrow = (plan: Plan, signal: AbortSignal) => Plan | Promise<Plan>;

/**
 * The rows of a set that have these values: the part that a key opens. Nothing else of the set can be read through it:
 * a read whose plan does not begin with the values is a mistake of this server, and fails.
 */
export function scopedRows(rows: RowStore, part: Part, narrow: Narrow): RowStore {
  const { where } = part;
  const changes = rows.changes?.within?.(part);
  const check = ({ equals }: Plan) => {
    if (!hasAll(equals, where)) throw outside();
  };
  return {
    ...(where.length === 0 ? readsOf(rows) : narrowedReads(rows, where, narrow)),
    ...(changes && { changes: new ScopedFeed(changes, where, check) }),
    identity: (signal) => rows.identity(signal),
    pointInTime: (signal) => rows.pointInTime(signal),
    insert: () => Promise.reject(new TypeError('a part of a set is only read')),
  };
}

type Reads = Pick<RowStore, 'read' | 'confirm' | 'get' | 'count' | 'split'>;

function readsOf(rows: RowStore): Reads {
  return {
    read: (...call) => rows.read(...call),
    confirm: (...call) => rows.confirm(...call),
    get: (...call) => rows.get(...call),
    count: (...call) => rows.count(...call),
    split: (...call) => rows.split(...call),
  };
}

function narrowedReads(rows: RowStore, where: readonly Equality[], narrow: Narrow): Reads {
  const own = (plan: Plan, signal: AbortSignal): Plan | Promise<Plan> => {
    if (hasAll(plan.equals, where)) return plan;
    if (plan.index || plan.equals?.length) throw outside();
    return narrow(plan, signal);
  };
  const read = async (plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<Batch> => {
    const mine = await own(plan, signal);
    if (!plan.isEmpty) return rows.read(mine, from, size, signal);
    const batch = await rows.read(mine, {}, ONE, signal);
    return { ...batch, rows: 0, length: 0, last: null, more: false, release: () => batch.release() };
  };
  return {
    read,
    confirm: async (batch, plan, signal) => rows.confirm(batch, await own(plan, signal), signal),
    get: async (id, signal) => {
      const batch = await read({ ...BY_KEY, ids: { from: id } }, {}, ONE, signal);
      return orRelease(batch, () => {
        if (batch.rows > 0 && isOfKey(batch, id)) return batch;
        batch.release();
        return null;
      });
    },
    count: async (plan, mode: CountMode, signal) => {
      if (plan.isEmpty) return { rows: 0, is: 'exact' };
      return rows.count(await own(plan, signal), mode, signal);
    },
    split: async (plan, parts, signal) =>
      plan.isEmpty ? [] : rows.split(await own(plan, signal), parts, signal),
  };
}

/** The same of a collection. */
export function scopedCollection(rows: Collection, part: Part, narrow: Narrow): Collection {
  const { where } = part;
  const check = (equals: readonly Equality[]) => {
    if (!hasAll(equals, where)) throw outside();
  };
  return {
    ...scopedRows(rows, part, narrow),
    indexes: (signal) => rows.indexes(signal),
    holds: async (index, equals, bracket, signal) => {
      check(equals);
      return rows.holds(index, equals, bracket, signal);
    },
    nextValue: async (index, equals, after, signal) => {
      check(equals);
      return rows.nextValue(index, equals, after, signal);
    },
  };
}

/** Whether a plan has the very values of a part, each path once. */
function hasAll(equals: readonly Equality[] = [], where: readonly Equality[]): boolean {
  return where.every(
    (own) =>
      equals.filter(({ path }) => path === own.path).every((one) => one === own) && equals.includes(own),
  );
}

function outside(): TypeError {
  return new TypeError('a read outside the part that a key opens');
}

/** Whether the row of a batch has this key: numbers are the same whatever their type, as they are to the store. */
function isOfKey(batch: Batch, id: Bookmark): boolean {
  return comparePlaces(bookmarkOf(documentOf(batch), BY_KEY), id) === 0;
}

import type { Scope } from '../access/rights.ts';
import { hiding, ScopeFaults } from '../access/scope-faults.ts';
import type { PlanParameters } from '../pages/query.ts';
import { EVERYTHING } from '../rows/selection.ts';
import { scopedRows } from '../store/scoped-rows.ts';
import type { StreamReader } from '../store/readers.ts';
import type { ChainReader, Equality, Plan, RowStore } from '../store/store.ts';
import { ITEM_PLAN } from './query.ts';

/** The fields of items that queries use. They cannot be hidden. */
const USED = ['category', 'price'];

/** What the routes of items read. */
export interface ItemSource<S extends ChainReader = StreamReader> {
  readonly rows: RowStore;
  readonly streams: S;
  readonly plan: PlanParameters;
  /** The plan of another plan's order and range: within what a key opens. */
  readonly within: (plan: Plan) => Plan;
}

/** All items. */
export function wholeItems<S extends ChainReader>(rows: RowStore, streams: S): ItemSource<S> {
  return { rows, streams, plan: ITEM_PLAN, within: (plan) => plan };
}

/**
 * The items that a key opens. Only `category` can be in its `where`: the other indexes of items have none that begins
 * with a value. Throws ScopeFaults.
 */
export function scopedItems<S extends ChainReader>(
  { rows }: Pick<ItemSource, 'rows'>,
  { where, hide }: Scope,
  openStreams: (rows: RowStore) => S,
): ItemSource<S> {
  const faults: string[] = [];
  const used = hide.filter((path) => USED.some((one) => path === one || path.startsWith(`${one}.`)));
  faults.push(...used.map((path) => `hide: ${path} cannot be hidden: queries of items use it`));
  const shown = hiding(EVERYTHING, hide, faults);
  const own = where.map((one) => valueOf(one, faults));
  if (faults.length > 0) throw new ScopeFaults(faults);
  const within = (plan: Plan): Plan => {
    if (own.length === 0) return plan;
    const isEmpty = plan.equals?.some(({ value }) => value !== own[0]?.value);
    return { ...plan, equals: own, ...(isEmpty && { isEmpty }) };
  };
  const mine = scopedRows(rows, { where: own, hide }, within);
  const plan: PlanParameters = { ...ITEM_PLAN, read: (query) => within(ITEM_PLAN.read(query)), shown };
  return { rows: mine, streams: openStreams(mine), plan, within };
}

function valueOf([path, text]: Scope['where'][number], faults: string[]): Equality {
  const [, prefix = 'str', value = text] =
    /^(str|int|num|dec|oid|date|uuid|bool|null):(.*)$/s.exec(text) ?? [];
  if (path !== 'category')
    faults.push(`where: no index of items answers ${path}; only category can be given`);
  else if (prefix !== 'str') faults.push('where: a category is a text');
  return { path, value, isOfPart: true };
}

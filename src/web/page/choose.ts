/** How a view changes when a filter, a range or an order is chosen, so that an index still answers it. */
import { keptWith, sortKept, sortsWith } from './allowed-queries.ts';
import type { Resource } from './resource.ts';
import type { View } from './view.ts';

/** Adds a filter. Filters that no index has together with it are dropped. */
export function withFilter({ queries }: Resource, view: View, path: string, text: string): View {
  const kept = keptWith(queries, [...view.equals.keys()], path);
  const equals = new Map([...view.equals].filter(([name]) => kept.includes(name)).concat([[path, text]]));
  return ordered(queries, { ...view, equals });
}

export function withoutFilter({ queries }: Resource, view: View, path: string): View {
  return ordered(queries, { ...view, equals: new Map([...view.equals].filter(([name]) => name !== path)) });
}

/** Sets the range of a path, which then orders the rows. */
export function withRange(view: View, path: string, low: string, high: string): View {
  const isSort = view.sort === path;
  return { ...view, sort: path, direction: isSort ? view.direction : 1, low, high };
}

/** Orders by a path, or turns the order around when it is that path already. */
export function withSort(view: View, path: string): View {
  if (view.sort === path) return { ...view, direction: view.direction === 1 ? -1 : 1 };
  return { ...view, sort: path, direction: 1, low: '', high: '' };
}

/** The paths that rows can be ordered by under the filters of a view. */
export function sortsOf({ queries }: Resource, { equals }: View): readonly string[] {
  return sortsWith(queries, [...equals.keys()]);
}

/** A view whose address names no order, in one that an index has. */
export function inSomeOrder({ queries }: Resource, view: View): View {
  const isDefault = view.sort === 'id' && view.direction === 1 && view.low === '' && view.high === '';
  return isDefault ? ordered(queries, view) : view;
}

/** The view with an order that an index has. A range goes with its order. */
function ordered(queries: Resource['queries'], view: View): View {
  const sort = sortKept(queries, [...view.equals.keys()], view.sort);
  return sort === view.sort ? view : { ...view, sort, direction: 1, low: '', high: '' };
}

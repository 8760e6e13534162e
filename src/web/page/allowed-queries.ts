/** Which filters and orders the indexes of a resource answer together, and what choosing one does. Needs no browser. */
import type { Resource } from './resource.ts';
import { orderBy, reversed, type View } from './view.ts';

type Paths = readonly string[];

const hasAll = (paths: Paths, wanted: Paths) => wanted.every((one) => paths.includes(one));

/** The paths that rows can be filtered by, alone or with others. Keys are found otherwise. */
export function filterPaths({ queries }: Resource): Paths {
  return [...new Set(queries.flatMap(({ filters }) => filters))].filter((path) => path !== 'id');
}

/** The paths that can order rows with exactly the filters of a view. */
export function sortsOf({ resource, equals }: View): Paths {
  const forms = resource.queries.filter(
    ({ filters }) => filters.length === equals.size && hasAll(filters, [...equals.keys()]),
  );
  return [...new Set(forms.map(({ sort }) => sort ?? 'id'))];
}

/** Whether an index has all these filters, perhaps with more. */
export function canCombine({ queries }: Resource, wanted: Paths): boolean {
  return queries.some(({ filters }) => hasAll(filters, wanted));
}

/** The filters that must be given, too, before an index answers those of a view, or orders its rows by `sort`. */
export function missingFilters({ resource, equals }: View, sort?: string): Paths {
  const missing = resource.queries
    .filter((form) => sort === undefined || (form.sort ?? 'id') === sort)
    .filter(({ filters }) => hasAll(filters, [...equals.keys()]))
    .map(({ filters }) => filters.filter((path) => !equals.has(path)));
  return missing.sort((one, other) => one.length - other.length)[0] ?? [];
}

/** The filters before a path in an index, as many of the view's as possible. Null: every index wants others before it. */
export function filtersBefore({ resource, equals }: View, path: string): Paths | null {
  const before = resource.queries
    .filter(({ filters }) => filters.includes(path))
    .map(({ filters }) => filters.slice(0, filters.indexOf(path)))
    .filter((paths) => paths.every((one) => equals.has(one)));
  return before.sort((one, other) => other.length - one.length)[0] ?? null;
}

/** Adds a filter. Filters that no index has together with it are dropped. */
export function withFilter(view: View, path: string, text: string): View {
  const equals = new Map<string, string>();
  for (const [name, value] of view.equals)
    if (name !== path && canCombine(view.resource, [...equals.keys(), name, path])) equals.set(name, value);
  return ordered({ ...view, equals: equals.set(path, text) });
}

export function withoutFilter(view: View, path: string): View {
  return ordered({ ...view, equals: new Map([...view.equals].filter(([name]) => name !== path)) });
}

export function withRange(view: View, path: string, low: string, high: string): View {
  return { ...view, ...(view.sort !== path && orderBy(path)), low, high };
}

export function withSort(view: View, path: string): View {
  return view.sort === path ? reversed(view) : { ...view, ...orderBy(path) };
}

/** A view whose address names no order, in one that an index has, as the server orders it. */
export function inSomeOrder(view: View): View {
  const isDefault = view.sort === 'id' && view.direction === 1 && view.low === '' && view.high === '';
  return isDefault ? ordered(view) : view;
}

/** The view in its own order if an index has it, else by id, else in the first order. A range goes with its order. */
function ordered(view: View): View {
  const sorts = sortsOf(view);
  const [first] = sorts;
  if (first === undefined || sorts.includes(view.sort)) return view;
  return { ...view, ...orderBy(sorts.includes('id') ? 'id' : first) };
}

/** What can be asked of a resource: which orders and filters its indexes answer together. Nothing here needs a browser. */
import type { Form } from './resource.ts';

/** The paths that can order rows with exactly these filters. */
export function sortsWith(forms: readonly Form[], filters: readonly string[]): readonly string[] {
  const found = forms.filter((form) => isSame(form.filters, filters)).map(({ sort }) => sort ?? 'id');
  return [...new Set(found)];
}

/** The paths that rows can be filtered by, alone or with others. Keys are found otherwise. */
export function filterPaths(forms: readonly Form[]): readonly string[] {
  return [...new Set(forms.flatMap(({ filters }) => filters))].filter((path) => path !== 'id');
}

/** Whether an index has all these filters, perhaps with more. */
export function canCombine(forms: readonly Form[], filters: readonly string[]): boolean {
  return forms.some((form) => filters.every((path) => form.filters.includes(path)));
}

/** The filters that must be given, too, before an index answers these ones. Empty: it does already. Null: none can. */
export function missingWith(forms: readonly Form[], filters: readonly string[]): readonly string[] | null {
  const all = forms
    .filter((form) => filters.every((path) => form.filters.includes(path)))
    .map((form) => form.filters.filter((path) => !filters.includes(path)));
  const [fewest] = all.sort((one, other) => one.length - other.length);
  return fewest ?? null;
}

/** The filters that must be given, too, before an index orders rows by a path. Empty: none would help. */
export function filtersToOrderBy(
  forms: readonly Form[],
  filters: readonly string[],
  path: string,
): readonly string[] {
  const ordered = forms.filter(({ sort }) => (sort ?? 'id') === path);
  return missingWith(ordered, filters) ?? [];
}

/** The filters that are left when `path` is added: all, or only those that an index has together with it. */
export function keptWith(
  forms: readonly Form[],
  filters: readonly string[],
  path: string,
): readonly string[] {
  const kept: string[] = [];
  for (const one of filters) if (one !== path && canCombine(forms, [...kept, one, path])) kept.push(one);
  return kept;
}

/**
 * The filters under which the values of a path can be listed: those that stand before it in an index, as many of the
 * given ones as possible. Null when every index wants others before it.
 */
export function filtersBefore(
  forms: readonly Form[],
  given: readonly string[],
  path: string,
): readonly string[] | null {
  const before = forms
    .map(({ filters }) => (filters.includes(path) ? filters.slice(0, filters.indexOf(path)) : null))
    .filter((paths) => paths !== null)
    .filter((paths) => paths.every((one) => given.includes(one)));
  return before.sort((one, other) => other.length - one.length)[0] ?? null;
}

/** The order that stays when the filters change: the present one if an index has it, else by id, else the first. */
export function sortKept(forms: readonly Form[], filters: readonly string[], sort: string): string {
  const sorts = sortsWith(forms, filters);
  if (sorts.includes(sort) || sorts.length === 0) return sort;
  return sorts.includes('id') ? 'id' : (sorts[0] ?? 'id');
}

function isSame(paths: readonly string[], others: readonly string[]): boolean {
  return paths.length === others.length && paths.every((path) => others.includes(path));
}

import type { Part } from './change-feed.ts';

/** What the readers of a part see of a row: which paths decide whether it is theirs, and which are hidden. */
export interface View {
  /** Sorted, each once. */
  readonly where: readonly string[];
  /** Sorted, each once. */
  readonly hide: readonly string[];
}

/** The view of a part. Parts by other values of the same fields have the same one. */
export function viewOf({ where, hide }: Part): View {
  return { where: sorted(where.map(({ path }) => path)), hide: sorted(hide) };
}

function sorted(paths: readonly string[]): readonly string[] {
  return [...new Set(paths)].sort();
}

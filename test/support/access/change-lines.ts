import assert from 'node:assert/strict';

export interface Tally {
  readonly cursor: string;
  readonly upToDate: boolean;
}
export type Line =
  | { readonly id: string }
  | { readonly removed: { readonly id: string } }
  | { readonly checkpoint: Tally }
  | { readonly end: Tally };

export const linesOf = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);

/** The cursor in the end line of an answer. */
export function cursorIn(text: string): string {
  const last = linesOf(text).at(-1);
  assert.ok(last && 'end' in last, text);
  return last.end.cursor;
}

/** The ids of the rows of an answer, and of the removed ones with a minus. */
export const idsIn = (text: string) =>
  linesOf(text).flatMap((line) =>
    'id' in line ? [line.id] : 'removed' in line ? [`-${line.removed.id}`] : [],
  );

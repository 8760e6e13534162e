import { KEY, keyPaths, textOf, type Bookmark, type RowOrder } from '../bookmark.ts';
import type { Index } from '../indexes.ts';
import { BSON } from '../values/bson.ts';
import { documentWith, elementOf } from '../values/bson-elements.ts';
import { fieldsOf } from '../values/fields.ts';
import { keyOfAny, keyOfValue } from '../values/order.ts';
import type { AmongValues, Equality, Plan } from '../plan.ts';

/** The rows of one value of a plan with several: a plan of one stretch of the index. */
export interface Stretch {
  readonly plan: Plan;
  readonly value: Equality;
}

/** The stretches of a plan, in the order of its values. Values that are one place (7 and 7.0) have one. */
export function stretchesOf({ among, ...plan }: Plan & { readonly among: AmongValues }): readonly Stretch[] {
  const { path } = among;
  const byPlace = new Map<string, Stretch>();
  for (const value of among.values) {
    const place = textOf(keyOfValue(value));
    if (byPlace.has(place)) continue;
    const own = { path, value };
    const equals = inOrderOf(plan.index, [...(plan.equals ?? []), own]);
    byPlace.set(place, { plan: { ...plan, equals }, value: own });
  }
  return [...byPlace.values()];
}

/** Equalities in the order of an index. Those that it lacks are behind. */
export function inOrderOf(index: Index | undefined, equals: readonly Equality[]): readonly Equality[] {
  const keys = index?.keys ?? [];
  const placeOf = ({ path }: Equality) => {
    const place = keys.findIndex((key) => key.path === path);
    return place < 0 ? keys.length : place;
  };
  return equals.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/** The place among the values of the row that a bookmark names. -1: it has none of them. */
export function placeAmong({ path, values }: AmongValues, bookmark: Bookmark): number {
  const found = fieldsOf(bookmark, [path]);
  const [value] = typeof found === 'string' ? [] : found;
  if (!value) return -1;
  const place = textOf(keyOfAny(value));
  const places = new Set(values.map((one) => textOf(keyOfValue(one))));
  return [...places].indexOf(place);
}

/** A bookmark of a whole plan as one of a stretch, whose rows have one value. */
export function withoutValue(bookmark: Bookmark, order: RowOrder): Bookmark {
  const paths = keyPaths(order);
  const values = fieldsOf(bookmark, paths);
  if (typeof values === 'string') throw new TypeError(`a bookmark is damaged: ${values}`);
  const elements = values.flatMap((value, n) =>
    value ? [elementOf(value.type, paths[n] ?? '', value.bytes)] : [],
  );
  return documentWith(...elements) as Bookmark;
}

/** A bookmark of a stretch as one of the whole plan. */
export function withValue(bookmark: Bookmark, { path, value }: Equality): Bookmark {
  if (path === KEY) return bookmark;
  return documentWith(elementsIn(bookmark), elementsIn(BSON.serialize({ [path]: value }))) as Bookmark;
}

/** The elements of a document, between its length and its end. */
function elementsIn(document: Uint8Array): Uint8Array {
  return document.subarray(4, -1);
}

import type { Batch } from '../batch.ts';
import { keyOf, valueBookmarkOf, bookmarkOf, type Identity } from '../bookmark.ts';
import { documentAt, endOfDocument } from '../bson-array.ts';
import type { Slots } from '../slots.ts';
import { hasValues, wantedOf } from '../has-values.ts';
import type { From, Size } from '../store.ts';
import { comparePlaces, compareValues } from '../order.ts';
import type { ValueRange } from '../plan.ts';
import { BatchBuilder } from './batch-builder.ts';
import type { Layout } from './create-collection.ts';
import type { Finder } from './find.ts';
import type { IndexedPlan } from './index-ranges.ts';
import { BY_KEY, indexOf, whenOf } from './plan.ts';
import { conditionsOf } from './predicates.ts';
import { isOfBracket } from './type-brackets.ts';

/**
 * The server finds at most the row that is meant, one with the deprecated undefined in place of null, and one with an
 * array, which no index over arrays holds.
 */
const MOST_FOUND = 4;

/**
 * Reads a plan whose equalities name at most one row: they have every field of a unique index. The server finds the row
 * by that index. The other conditions of the plan are checked here, as an index would: by exact value and type.
 */
export async function readSingle(
  plan: IndexedPlan,
  { after, skip = 0 }: From,
  size: Size,
  { finder, slots }: { readonly finder: Finder; readonly slots: Slots },
  layout: Layout,
  identity: Identity | undefined,
  signal: AbortSignal,
): Promise<Batch> {
  const { equals = [], index, range } = plan;
  const ofIndex = equals.filter(({ path }) => index.keys.some((key) => key.path === path));
  const asked = { index: indexOf(plan), sort: {}, filter: conditionsOf(ofIndex), ...whenOf(plan) };
  const reply =
    asked.index === BY_KEY
      ? await finder.one(ofIndex[0]?.value, layout, signal, asked)
      : await finder.range(asked, MOST_FOUND, 0, layout, signal);
  const bytes = reply.slot.bytes(reply.start + reply.length);
  const wanted = wantedOf(equals);
  const isMeant = (row: Uint8Array): boolean => {
    if (!hasValues(row, wanted)) return false;
    if (after && comparePlaces(bookmarkOf(row, plan), after) * plan.direction <= 0) return false;
    return !range || isWithin(valueAt(row, plan.sort), range);
  };
  let [start, length] = [reply.start, 0];
  for (let row = reply.start; row < bytes.length && skip === 0;) {
    const document = documentAt(bytes, row);
    const end = endOfDocument(bytes, document);
    if (isMeant(bytes.subarray(document, end))) [start, length] = [row, end - row];
    row = end;
  }
  const builder = new BatchBuilder(plan, size);
  builder.take({ ...reply, start, length });
  return builder.toBatch(slots, false, identity);
}

function valueAt(row: Uint8Array, path: string): unknown {
  return (keyOf(valueBookmarkOf(row, path)) as Readonly<Record<string, unknown>>)[path];
}

function isWithin(value: unknown, { bracket, low, high }: ValueRange): boolean {
  if (!isOfBracket(value, bracket)) return false;
  const toLow = low ? compareValues(value, low.value) : 1;
  const toHigh = high ? compareValues(value, high.value) : -1;
  return (
    (toLow > 0 || (toLow === 0 && !!low?.isInclusive)) &&
    (toHigh < 0 || (toHigh === 0 && !!high?.isInclusive))
  );
}

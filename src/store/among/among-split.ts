import type { Bookmark } from '../bookmark.ts';
import type { Collection } from '../store.ts';
import { comparePlaces } from '../values/order.ts';
import type { Stretch } from './among-plans.ts';

/** The least pieces of a stretch: their ends say where its ids lie, also where it is a small part of all rows. */
const FEWEST_PIECES = 4;

/** An id of a stretch, and the number of rows of the piece that ends before it. */
interface Bound {
  readonly id: Bookmark;
  readonly rows: number;
}

/**
 * Where parts of about the same size begin in the ids of all stretches together (see Collection.split). Each stretch is
 * split into pieces, more where it has more rows, and the ends of all pieces are walked in the order of ids.
 */
export async function splitStretches(
  rows: Pick<Collection, 'count' | 'split'>,
  stretches: readonly Stretch[],
  parts: number,
  signal: AbortSignal,
): Promise<readonly Bookmark[]> {
  if (parts === 1) return [];
  const counts: number[] = [];
  for (const { plan } of stretches) counts.push((await rows.count(plan, 'exact', signal)).rows);
  const all = counts.reduce((sum, one) => sum + one, 0);
  const bounds: Bound[] = [];
  for (const [n, { plan }] of stretches.entries()) {
    const count = counts[n] ?? 0;
    if (count === 0) continue;
    const pieces = FEWEST_PIECES + Math.ceil((2 * parts * count) / all);
    const ids = await rows.split(plan, pieces, signal);
    for (const id of ids) bounds.push({ id, rows: count / (ids.length + 1) });
  }
  return dividing(
    bounds.toSorted((a, b) => comparePlaces(a.id, b.id)),
    parts,
  );
}

/** Of sorted bounds, those that divide the rows before them all into parts. */
function dividing(bounds: readonly Bound[], parts: number): readonly Bookmark[] {
  const all = bounds.reduce((sum, { rows }) => sum + rows, 0);
  const found: Bookmark[] = [];
  let passed = 0;
  for (const { id, rows } of bounds) {
    passed += rows;
    const last = found.at(-1);
    const isDue = found.length < parts - 1 && passed >= ((found.length + 1) * all) / parts;
    if (isDue && (!last || comparePlaces(id, last) > 0)) found.push(id);
  }
  return found;
}

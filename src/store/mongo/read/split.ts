import { bookmarkOf, KEY, type Bookmark } from '../../bookmark.ts';
import { documentAt } from '../../values/bson-array.ts';
import { named } from '../commands.ts';
import { countRows } from './count.ts';
import type { Layout } from '../collection/create-collection.ts';
import { faultOf } from '../faults.ts';
import type { Finder } from './find.ts';
import { rangesOf } from './index-ranges.ts';
import type { Layouts } from '../collection/layouts.ts';
import type { IndexedPlan } from '../plan.ts';
import { conditionsOf } from './predicates.ts';
import { rowsOf } from '../reply.ts';

/** Up to this number of rows, parts are found by counting: about a second. For more a sample is drawn, as quickly. */
const MOST_COUNTED = 2_000_000;

/**
 * Ids drawn at random per part, and the least drawn in all. With 500, the size of a part varies by 4.5 % (one over
 * their square root), so that the largest of 64 is within 15 %. $sample draws without a scan while the sample is less
 * than a twentieth of the collection. It draws evenly by pages, not by rows: where ids of one type fill their pages
 * better than those of another, parts are up to 23 % off.
 */
const SAMPLES_A_PART = 500;
const FEWEST_SAMPLES = 8_000;

export async function splitRows(
  { layouts, finder }: { readonly layouts: Layouts; readonly finder: Pick<Finder, 'range'> },
  plan: IndexedPlan,
  parts: number,
  layout: Layout,
  signal: AbortSignal,
  mostCounted = MOST_COUNTED,
): Promise<Bookmark[]> {
  if (parts === 1) return [];
  const mode = plan.equals?.length ? 'exact' : 'estimated'; // the collection's own size is exact enough
  const { rows, is } = await countRows(layouts, plan, mode, layout, signal);
  if (is === 'atLeast' || rows > mostCounted) return bySample(layouts, plan, parts, layout, signal);
  return byCounting(finder, plan, parts, rows, layout, signal);
}

/** Finds the beginning of each part by its number of index entries after the one before. Reads no rows. */
async function byCounting(
  finder: Pick<Finder, 'range'>,
  plan: IndexedPlan,
  parts: number,
  rows: number,
  layout: Layout,
  signal: AbortSignal,
): Promise<Bookmark[]> {
  const ids: Bookmark[] = [];
  let after: Bookmark | null = null;
  let at = 0;
  for (let part = 1; part < parts; part++) {
    const step = Math.floor((part * rows) / parts) - at;
    const [range] = rangesOf(plan, after, layout.clustered);
    if (step === 0 || !range) continue;
    const { slot, start, length } = await finder.range(range, 1, layout, signal, step, KEY);
    const row = slot.bytes(start + length).slice(start);
    slot.release();
    if (length === 0) break; // rows were deleted since they were counted
    after = bookmarkOf(row.subarray(documentAt(row, 0)), { sort: KEY });
    ids.push(after);
    at += step;
  }
  return ids;
}

/** The lowest id of each further part of a sample. */
async function bySample(
  layouts: Layouts,
  plan: IndexedPlan,
  parts: number,
  layout: Layout,
  signal: AbortSignal,
): Promise<Bookmark[]> {
  const { equals = [] } = plan;
  const pipeline = [
    { $sample: { size: Math.max(FEWEST_SAMPLES, parts * SAMPLES_A_PART) } },
    ...(equals.length === 0 ? [] : [{ $match: conditionsOf(equals) }]),
    { $project: { _id: 1 } },
    { $bucketAuto: { groupBy: '$_id', buckets: parts } },
    { $project: { _id: '$_id.min' } },
  ];
  const sampled = { aggregate: layouts.collection, pipeline, cursor: { batchSize: parts + 1 } };
  const command = named(sampled, plan.identity ?? layout.identity);
  try {
    const reply = await layouts.connection.run(command, { signal, rowsAsBytes: true });
    return rowsOf(reply)
      .rows.slice(1)
      .map((row) => bookmarkOf(row, { sort: KEY }));
  } catch (error) {
    throw faultOf(error, layouts, plan);
  }
}

import { makeBookmark, type Bookmark } from '../bookmark.ts';
import { exactValues } from '../exact-values.ts';
import type { Count, CountMode, Plan } from '../store.ts';
import { named } from './commands.ts';
import type { Layout } from './create-collection.ts';
import type { MongoConnection } from './connection.ts';
import { faultOf } from './faults.ts';
import type { Finder } from './find.ts';
import { rangesOf } from './index-ranges.ts';
import { conditionsOf } from './predicates.ts';
import { rowsOf } from './reply.ts';
import type { Layouts } from './layouts.ts';

/**
 * Up to this many rows, parts are found by counting. That walks over the index and takes about a second. For more rows
 * a sample is drawn, which takes no longer, however many rows there are.
 */
const MOST_COUNTED = 2_000_000;

/**
 * Ids drawn at random per part, and the least drawn in all. With 500, the size of a part varies by 4.5 % (one over
 * their square root), so that the largest of 64 is within 15 %. $sample draws without a scan while the sample is less
 * than a twentieth of the collection. It draws evenly by pages, not by rows: where ids of one type fill their pages
 * better than those of another, parts are up to 23 % off.
 */
const SAMPLES_A_PART = 500;
const FEWEST_SAMPLES = 8_000;

/** What splitting a collection requires of it. */
export interface SplitParts {
  readonly connection: MongoConnection;
  readonly layouts: Layouts;
  readonly finder: Pick<Finder, 'idBehind'>;
  readonly count: (plan: Plan, mode: CountMode, layout: Layout, signal: AbortSignal) => Promise<Count>;
}

/** See Collection.split. */
export async function splitRows(
  of: SplitParts,
  plan: Plan,
  parts: number,
  layout: Layout,
  signal: AbortSignal,
): Promise<Bookmark[]> {
  if (parts === 1) return [];
  const mode = plan.equals?.length ? 'exact' : 'estimated'; // the collection's own size is exact enough
  const { rows, is } = await of.count(plan, mode, layout, signal);
  if (is === 'atLeast' || rows > MOST_COUNTED) return bySample(of, plan, parts, layout, signal);
  return byCounting(of.finder, plan, parts, rows, layout, signal);
}

/** Finds the beginning of each part by its number of index entries after the one before. Reads no rows. */
async function byCounting(
  finder: SplitParts['finder'],
  plan: Plan,
  parts: number,
  rows: number,
  layout: Layout,
  signal: AbortSignal,
): Promise<Bookmark[]> {
  const ids: Bookmark[] = [];
  let [after, at]: [Bookmark | null, number] = [null, 0];
  for (let part = 1; part < parts; part++) {
    const step = Math.floor((part * rows) / parts) - at;
    const [range] = rangesOf(plan, after, layout.clustered);
    if (step === 0 || !range) continue;
    after = await finder.idBehind(range, step, layout, signal);
    if (!after) break; // rows were deleted since they were counted
    ids.push(after);
    at += step;
  }
  return ids;
}

/** Takes quantiles of a sample. The server sorts it, in the order of the index, and sends only the quantiles. */
async function bySample(
  { connection, layouts }: SplitParts,
  plan: Plan,
  parts: number,
  layout: Layout,
  signal: AbortSignal,
): Promise<Bookmark[]> {
  const { equals = [] } = plan;
  const at = { $floor: { $multiply: ['$$part', { $divide: [{ $size: '$ids' }, parts] }] } };
  const pipeline = [
    { $sample: { size: Math.max(FEWEST_SAMPLES, parts * SAMPLES_A_PART) } },
    ...(equals.length === 0 ? [] : [{ $match: conditionsOf(equals) }]),
    { $project: { _id: 1 } },
    { $sort: { _id: 1 } },
    { $group: { _id: null, ids: { $push: '$_id' } } },
    {
      $project: {
        ids: { $map: { input: { $range: [1, parts] }, as: 'part', in: { $arrayElemAt: ['$ids', at] } } },
      },
    },
  ];
  const sampled = { aggregate: layouts.collection, pipeline, cursor: {}, allowDiskUse: true };
  const command = named(sampled, plan.identity ?? layout.identity);
  const reply = await connection.run(command, { signal, rowsAsBytes: true }).catch((error: unknown) => {
    throw faultOf(error, layouts, plan);
  });
  const [sample] = rowsOf(reply).rows;
  const values = (sample ? exactValues(sample).ids : []) as readonly unknown[];
  const ids = values.map((_id) => makeBookmark({ _id }));
  return ids.filter((id, n) => n === 0 || Buffer.compare(id, ids[n - 1] ?? id) !== 0);
}

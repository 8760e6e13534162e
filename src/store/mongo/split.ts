import { makeBookmark, type Bookmark } from '../bookmark.ts';
import { BSON } from '../bson.ts';
import type { Plan } from '../store.ts';
import type { MongoConnection } from './connection.ts';

/**
 * Ids drawn at random for each part, and at least. 500 make a part's size vary by 4.5 % (their square root), so that the
 * largest of 64 is within 15 %. $sample draws without a scan while they are less than a twentieth of the collection.
 */
const SAMPLES_A_PART = 500;
const FEWEST_SAMPLES = 8_000;

/** See ItemStore.split: quantiles of a sample, sorted by the server, whose order is the index's. Only they come over. */
export async function splitBySample(
  connection: MongoConnection,
  collection: string,
  { category }: Plan,
  parts: number,
  signal: AbortSignal,
): Promise<Bookmark[]> {
  if (parts === 1) return [];
  const at = { $floor: { $multiply: ['$$part', { $divide: [{ $size: '$ids' }, parts] }] } };
  const pipeline = [
    { $sample: { size: Math.max(FEWEST_SAMPLES, parts * SAMPLES_A_PART) } },
    ...(category === undefined ? [] : [{ $match: { category: { $eq: category } } }]),
    { $project: { _id: 1 } },
    { $sort: { _id: 1 } },
    { $group: { _id: null, ids: { $push: '$_id' } } },
    {
      $project: {
        ids: { $map: { input: { $range: [1, parts] }, as: 'part', in: { $arrayElemAt: ['$ids', at] } } },
      },
    },
  ];
  const command = { aggregate: collection, pipeline, cursor: {}, allowDiskUse: true };
  const { cursor } = await connection.run(command, { signal, raw: true });
  const exact = { promoteValues: false, promoteBuffers: false };
  const { firstBatch } = BSON.deserialize(cursor as Uint8Array, exact) as {
    firstBatch: { ids: unknown[] }[];
  };
  const ids = (firstBatch[0]?.ids ?? []).map((_id) => makeBookmark({ _id }));
  return ids.filter((id, n) => n === 0 || Buffer.compare(id, ids[n - 1] ?? id) !== 0);
}

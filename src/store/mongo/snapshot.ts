import type { Timestamp } from 'mongodb';
import { AppError } from '../../errors.ts';
import { UUID } from '../bson.ts';
import type { PointInTime } from '../store.ts';
import type { MongoConnection } from './connection.ts';
import { snapshotFault } from './errors.ts';
import { faultOf } from './faults.ts';
import type { Layouts } from './layouts.ts';

/** A BSON timestamp as 64 bits: seconds (`t`) in the upper half, the increment (`i`) in the lower half. */
export function pointInTimeOf({ t, i }: Timestamp): PointInTime {
  return (BigInt(t) << 32n) | BigInt(i);
}

/**
 * See RowStore.pointInTime. Reads one row at a snapshot that the server picks. A majority has reached that time, and
 * it is not before anything that the causal session has seen. (The operationTime of a reply may be a time that a
 * majority lacks.) It names the collection of the layout, so that what is read at this time is not of one before.
 */
export async function presentTime(
  connection: MongoConnection,
  layouts: Layouts,
  signal: AbortSignal,
): Promise<PointInTime | null> {
  const { identity } = await layouts.layout(signal); // a collection that does not exist yet has no time
  const find = { find: layouts.collection, projection: { _id: 1 }, limit: 1, singleBatch: true };
  const named = identity === undefined ? find : { ...find, collectionUUID: new UUID(identity) };
  try {
    const { cursor } = await connection.run(named, { signal, snapshot: 'latest' });
    const { atClusterTime } = cursor as { atClusterTime?: Timestamp };
    if (!atClusterTime) throw new TypeError('a snapshot came without its time');
    return pointInTimeOf(atClusterTime);
  } catch (error) {
    const fault = snapshotFault(error);
    if (fault instanceof AppError && fault.code === 'snapshot-unsupported') return null;
    throw faultOf(fault, layouts, {});
  }
}

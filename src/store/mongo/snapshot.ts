import type { Timestamp } from 'mongodb';
import { AppError } from '../../errors.ts';
import type { PointInTime } from '../store.ts';
import type { MongoConnection } from './connection.ts';
import { snapshotFault } from './errors.ts';

/** A BSON timestamp as 64 bits: seconds (`t`) in the upper half, the increment (`i`) in the lower half. */
export function pointInTimeOf({ t, i }: Timestamp): PointInTime {
  return (BigInt(t) << 32n) | BigInt(i);
}

/**
 * See RowStore.pointInTime. Reads one row at a snapshot that the server picks. A majority has reached that time, and
 * it is not before anything that the causal session has seen. (The operationTime of a reply may be a time that a
 * majority lacks.)
 */
export async function presentTime(
  connection: MongoConnection,
  collection: string,
  signal: AbortSignal,
): Promise<PointInTime | null> {
  const command = { find: collection, projection: { _id: 1 }, limit: 1, singleBatch: true };
  try {
    const { cursor } = await connection.run(command, { signal, snapshot: 'latest' });
    const { atClusterTime } = cursor as { atClusterTime?: Timestamp };
    if (!atClusterTime) throw new TypeError('a snapshot came without its time');
    return pointInTimeOf(atClusterTime);
  } catch (error) {
    const told = snapshotFault(error);
    if (told instanceof AppError && told.code === 'snapshot-unsupported') return null;
    throw told;
  }
}

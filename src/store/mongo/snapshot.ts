import type { Timestamp } from 'mongodb';
import { AppError } from '../../base/errors.ts';
import type { Identity, PointInTime } from '../bookmark.ts';
import { findOne, ON_PRIMARY } from './commands.ts';
import type { MongoConnection } from './connection.ts';
import { snapshotFault } from './errors.ts';

/** A BSON timestamp as 64 bits: seconds (`t`) in the upper half, the increment (`i`) in the lower half. */
export function pointInTimeOf({ t, i }: Timestamp): PointInTime {
  return (BigInt(t) << 32n) | BigInt(i);
}

/** Whether a time is beyond the deployment's clock, as the primary knows it. */
export async function isAhead(connection: MongoConnection, time: PointInTime, signal: AbortSignal) {
  const isUnheard = () => {
    const known = connection.session.clusterTime?.clusterTime;
    return time > (known ? pointInTimeOf(known) : 0n);
  };
  if (!isUnheard()) return false;
  await connection.run({ hello: 1 }, { signal, ...ON_PRIMARY }); // another process may have heard of a later time
  return isUnheard();
}

/**
 * See Description.now. Reads one row at a snapshot that the server picks. A majority has reached that time, and it is not
 * before anything that the causal session has seen. (The operationTime of a reply may be a time that a majority lacks.)
 * `identity`: of the collection of the layout, so that what is read at this time is not of one before.
 */
export async function presentTime(
  connection: MongoConnection,
  collection: string,
  identity: Identity | undefined,
  signal: AbortSignal,
): Promise<PointInTime | null> {
  try {
    const { cursor } = await connection.run(findOne(collection, identity), { signal, snapshot: 'latest' });
    const { atClusterTime } = cursor as { atClusterTime?: Timestamp };
    if (!atClusterTime) throw new TypeError('a snapshot came without its time');
    return pointInTimeOf(atClusterTime);
  } catch (error) {
    const fault = snapshotFault(error);
    if (fault instanceof AppError && fault.code === 'snapshot-unsupported') return null;
    throw fault;
  }
}

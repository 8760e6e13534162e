import type { Timestamp } from 'mongodb';
import { changesUnsupported } from '../../../errors.ts';
import type { PointInTime } from '../../bookmark.ts';
import { awaitAtMost } from '../../deadline.ts';
import { findOne } from '../commands.ts';
import { COMMAND_LIMIT_MS, type MongoConnection } from '../connection.ts';
import { faultOf } from '../faults.ts';
import { coalesced } from '../coalesced.ts';
import type { Layouts } from '../layouts.ts';
import { isAhead, pointInTimeOf } from '../snapshot.ts';
import { STANDALONE } from './faults.ts';
import { notOfThisStore } from './place.ts';

/** The time of a collection's history. Callers that ask at the same time share one question. */
export function feedClock(connection: MongoConnection, layouts: Layouts) {
  const looks = coalesced<'', PointInTime>(async () => {
    const { identity } = await layouts.layout();
    try {
      const { operationTime } = await connection.run(findOne(layouts.collection, identity));
      if (!operationTime) throw changesUnsupported(STANDALONE);
      return pointInTimeOf(operationTime as Timestamp);
    } catch (error) {
      throw faultOf(error, layouts, {});
    }
  });
  return {
    /**
     * The time of a read of the collection that begins now or later: a majority has every change up to it. Rejects with
     * `changes-unsupported` where there is no such time, with the server's error 361 in an AppError when the collection
     * was replaced, else as MongoConnection.run does.
     */
    present: (signal: AbortSignal): Promise<PointInTime> =>
      awaitAtMost(COMMAND_LIMIT_MS, signal, looks.fresh('')),
    /**
     * Rejects with `invalid-cursor` when a time is beyond the clock of the deployment. mongod would accept it, and leave
     * out every change before it.
     */
    async refuseFuture(time: PointInTime, signal: AbortSignal): Promise<void> {
      if (await isAhead(connection, time, signal)) throw notOfThisStore();
    },
  };
}

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
export class FeedClock {
  readonly #connection: MongoConnection;
  readonly #layouts: Layouts;
  readonly #looks = coalesced<''>(
    () => this.#ask(),
    () => performance.now(),
  );
  #time: PointInTime = 0n;

  constructor(connection: MongoConnection, layouts: Layouts) {
    this.#connection = connection;
    this.#layouts = layouts;
  }

  /**
   * The time of a read of the collection that begins now or later: a majority has every change up to it. Rejects with
   * `changes-unsupported` where there is no such time, with the server's error 361 in an AppError when the collection
   * was replaced, else as MongoConnection.run does.
   */
  async present(signal: AbortSignal): Promise<PointInTime> {
    await awaitAtMost(COMMAND_LIMIT_MS, signal, this.#looks.fresh(''));
    return this.#time;
  }

  /**
   * Rejects with `invalid-cursor` when a time is beyond the clock of the deployment. mongod would accept it, and leave
   * out every change before it.
   */
  async refuseFuture(time: PointInTime, signal: AbortSignal): Promise<void> {
    if (await isAhead(this.#connection, time, signal)) throw notOfThisStore();
  }

  async #ask(): Promise<void> {
    const { identity } = await this.#layouts.layout();
    try {
      const { operationTime } = await this.#connection.run(findOne(this.#layouts.collection, identity));
      if (!operationTime) throw changesUnsupported(STANDALONE);
      this.#time = pointInTimeOf(operationTime as Timestamp);
    } catch (error) {
      throw faultOf(error, this.#layouts, {});
    }
  }
}

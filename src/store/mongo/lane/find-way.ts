import type { Slot } from '../../turns/slots.ts';
import type { Plan, PointInTime } from '../../store.ts';

/**
 * The time and the collection that a find must read. Without `at` and `since`: not earlier than anything that was seen
 * or written before. `identity`: the find fails with error 361 when that collection was dropped or renamed. Without
 * `identity`, a find on a missing collection returns no rows and no error.
 */
export type When = { readonly [Name in 'at' | 'since' | 'identity']?: Plan[Name] | undefined };

/**
 * There are two ways: the driver (driver.ts beside this folder), and straight off the socket (lane.ts). The same suites test both.
 */
export interface FindWay {
  /**
   * Sends a find, or an aggregate, and repeats it when the connection or the member was lost. The command holds bounds
   * and size only; the way adds read concern, session and time limit. Rejects with the signal's reason, with
   * `store-unavailable`, or with MongoServerError when the command itself is at fault.
   */
  find(command: Readonly<Record<string, unknown>>, signal: AbortSignal, when?: When): Promise<Reply>;
}

/** A find's reply with its rows unread. The caller that receives it must release its slot. */
export interface Reply {
  readonly slot: Slot;
  /** Where the rows lie in the slot, in bytes. They are the body of a BSON array, see bson-array.ts. */
  readonly start: number;
  readonly length: number;
  /** Whether the reply stopped at 16 MB, before `limit` rows and the end. The way closes the cursor left open. */
  readonly cut: boolean;
  readonly asOf?: PointInTime | undefined;
}

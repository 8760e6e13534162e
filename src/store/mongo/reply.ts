import { onDemand, type Document, type Long } from '../bson.ts';
import type { Slot } from '../slots.ts';
import type { Plan, PointInTime } from '../store.ts';

/**
 * The time and the collection that a find must read. Without `at` and `since`: not earlier than anything that was seen
 * or written before. `identity`: the find fails with error 361 when that collection was dropped or renamed. Without
 * `identity`, a find on a missing collection returns no rows and no error.
 */
export type When = { readonly [Name in 'at' | 'since' | 'identity']?: Plan[Name] | undefined };

/**
 * There are two ways: the driver (driver.ts), and straight off the socket (lane/lane.ts). The same suites test both.
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

/** The reply to a command of a cursor, as the driver decodes it when rows stay bytes. */
export interface RowsReply {
  /** Each row is a BSON document. */
  readonly rows: readonly Uint8Array[];
  /** Not 0n when the server keeps the cursor open. */
  readonly id: bigint;
  /** The other members of the reply's `cursor`. */
  readonly cursor: Document;
}

/** Takes the rows from a reply that the driver decoded with `rowsAsBytes`. Throws TypeError when it has none. */
export function rowsOf({ cursor }: Document): RowsReply {
  const { firstBatch, nextBatch, id } = (cursor ?? {}) as Document;
  const rows = (firstBatch ?? nextBatch) as readonly Uint8Array[] | undefined;
  if (!rows || id === undefined) throw new TypeError('a command of a cursor was answered without rows or id');
  return { rows, id: BigInt(String(id as number | Long)), cursor: cursor as Document };
}

/** A reply's `cursor` document: where its rows are, in bytes from the document's start, and the cursor's id. */
export interface Cursor {
  readonly start: number;
  readonly length: number;
  /** Not 0n when the server keeps the cursor open. */
  readonly id: bigint;
}

/** Parses a reply's `cursor` document. Throws TypeError when it is not one. */
export function readCursor(cursor: Uint8Array): Cursor {
  let rows: { start: number; length: number } | null = null;
  let id: bigint | null = null;
  for (const [, nameAt, nameLength, at, length] of onDemand.parseToElements(cursor)) {
    if (nameLength === 10 && cursor[nameAt] === FIRST_LETTER_OF_BATCH)
      rows = { start: at + 4, length: length - 5 };
    if (nameLength === 2 && cursor[nameAt] === FIRST_LETTER_OF_ID) id = int64At(cursor, at);
  }
  if (!rows || id === null) throw new TypeError('a find was answered without firstBatch or id');
  return { ...rows, id };
}

/** Of `firstBatch` (10 letters) and `id` (2). A cursor's other fields are `ns` and `partialResultsReturned`. */
const [FIRST_LETTER_OF_BATCH, FIRST_LETTER_OF_ID] = [0x66, 0x69];

function int64At(bytes: Uint8Array, at: number): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset + at, 8).getBigInt64(0, true);
}

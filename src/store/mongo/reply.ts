import { storeUnavailable } from '../../errors.ts';
import { onDemand } from '../bson.ts';
import type { Slot } from '../slots.ts';
import type { Plan, PointInTime } from '../store.ts';

/**
 * Of what time the rows of a find are to be (neither: not before anything that was seen or written until then), and of which
 * collection: the find is error 361 when that is gone or has another name. Without it, a find on a name that is gone is
 * answered with no rows and no error.
 */
export type When = Pick<Plan, 'at' | 'since' | 'identity'>;

/**
 * The way a find takes to the server and its rows take back. There are two: through the driver (driver.ts), and read off
 * the socket (lane/lane.ts). Both are tested by the same suites.
 */
export interface FindWay {
  /**
   * Sends a find command (its bounds and size alone: concern, session and time limit are the way's), again when the
   * connection or the member was lost. Rejects with the signal's reason, `store-unavailable`, or MongoServerError when the
   * command itself is at fault.
   */
  find(command: Readonly<Record<string, unknown>>, signal: AbortSignal, when?: When): Promise<Reply>;
  /** Resolves when nothing is under way that nobody waits for. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

/** A find's reply, of which nobody has looked at a row yet. Whoever has it gives its slot back. */
export interface Reply {
  readonly slot: Slot;
  /** Where the rows lie in the slot: the body of a BSON array, for each row 0x03, a name, NUL, the document. */
  readonly start: number;
  readonly length: number;
  /** Whether it stopped at 16 MB, before `limit` rows and before the end. The cursor left open is the way's to close. */
  readonly cut: boolean;
  /** See Batch. */
  readonly asOf?: PointInTime | undefined;
}

/** What a reply's `cursor` document says: where its rows are, counted from the document's start, and the cursor's id. */
export interface Cursor {
  readonly start: number;
  readonly length: number;
  /** Not 0n when the server holds a cursor open. */
  readonly id: bigint;
}

/** Takes a reply's `cursor` apart. TypeError when it is none. */
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

/** Of `firstBatch` (10 letters) and `id` (2); beside them a cursor has `ns` and `partialResultsReturned`. */
const [FIRST_LETTER_OF_BATCH, FIRST_LETTER_OF_ID] = [0x66, 0x69];

function int64At(bytes: Uint8Array, at: number): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset + at, 8).getBigInt64(0, true);
}

/** Where the document of the row at `start` begins; it is as long as `sizeAt` there says, and then the next row begins. */
export function documentAt(rows: Uint8Array, start: number): number {
  let at = start + 1;
  while (rows[at] !== 0 && at < rows.length) at++; // a name of a few digits: a call would cost more
  return at + 1;
}

/** The size of the document at `at`. Rejects as `store-unavailable` what runs beyond the rows: the reply is damaged. */
export function sizeAt(rows: Uint8Array, at: number): number {
  const size =
    (rows[at] ?? 0) | ((rows[at + 1] ?? 0) << 8) | ((rows[at + 2] ?? 0) << 16) | ((rows[at + 3] ?? 0) << 24);
  if (size < 5 || at + size > rows.length)
    throw storeUnavailable(
      new Error(`a row of ${size} bytes begins ${rows.length - at} bytes before the reply's end`),
    );
  return size;
}

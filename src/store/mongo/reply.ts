import type { Document, Long } from '../values/bson.ts';

/** The reply to a command of a cursor, as the driver decodes it when rows stay bytes. */
interface RowsReply {
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

import { onDemand } from '../bson.ts';

/** A find's reply, of which nobody has looked at a row yet. */
export interface Reply {
  /** The body of a BSON array: for each row 0x03, a name, NUL, the document. */
  readonly rows: Buffer;
  /** Not 0n when the reply stopped at 16 MB before `limit` rows or the end: the server then holds a cursor open. */
  readonly cursor: bigint;
}

/** Takes a reply's `cursor` apart, which came as bytes. TypeError when it is none. */
export function readReply(cursor: Uint8Array): Reply {
  const bytes = Buffer.from(cursor.buffer, cursor.byteOffset, cursor.length);
  let rows: Buffer | null = null;
  let id: bigint | null = null;
  for (const [, nameAt, nameLength, at, length] of onDemand.parseToElements(cursor)) {
    const name = bytes.toString('latin1', nameAt, nameAt + nameLength);
    if (name === 'firstBatch') rows = bytes.subarray(at + 4, at + length - 1);
    if (name === 'id') id = bytes.readBigInt64LE(at);
  }
  if (!rows || id === null) throw new TypeError('a find was answered without firstBatch or id');
  return { rows, cursor: id };
}

/** Where the document of the row that begins at `start` begins and ends; the next row begins at its end. */
export function rowAt(rows: Buffer, start: number): { readonly document: number; readonly end: number } {
  let document = start + 1;
  while (rows[document] !== 0 && document < rows.length) document++; // a name of a few digits: a call would cost more
  document++;
  return { document, end: document + rows.readInt32LE(document) };
}

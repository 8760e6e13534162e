import type { Bookmark } from '../../bookmark.ts';
import type { Value } from '../../keys.ts';

/**
 * A record of the log holds the ids that one transaction changed, or a part of them:
 *
 * | bytes | |
 * |---|---|
 * | 8 | when it was written, in milliseconds since 1970 |
 * | 2 | the number of its ids |
 * | for each id 1, 2, n | the BSON type, the length and the bytes of the value |
 *
 * What a change says of the row before it (see before.ts) stands before its id in the same way, with the type 0, which
 * no value has.
 *
 * Each id has a sequence number. The key of the record has the number of its last id, and the ids before it have the
 * numbers before that one.
 */
const HEAD_BYTES = 10;
const COUNT_AT = 8;
const ID_HEAD_BYTES = 3;
/** In place of a BSON type. */
const BEFORE = 0;
/**
 * A record is ended before it has so many bytes, if its last id is not long: LMDB stores two of them in a page. Larger
 * ones would take whole pages side by side, which LMDB has to look for.
 */
const MOST_BYTES = 1_800;
/** The value of an `_id` has no more bytes than a few times those of its key, which has at most 1,978. */
const LARGEST_BYTES = 64 * 1024;

/** Collects ids in the form of a record. It is used again for each record, so that a row costs no objects. */
export class IdList {
  count = 0;
  #bytes = new Uint8Array(LARGEST_BYTES);
  #view = new DataView(this.#bytes.buffer);
  #length = HEAD_BYTES;

  get isFull(): boolean {
    return this.#length >= MOST_BYTES;
  }

  begin(): void {
    this.count = 0;
    this.#length = HEAD_BYTES;
  }

  /** Adds the value of an `_id`, and what its change says of the row before it. */
  add(id: Value, before: Uint8Array | null): void {
    if (before) this.#put({ type: BEFORE, bytes: before });
    this.#put(id);
    this.count++;
  }

  #put({ type, bytes }: Value): void {
    let at = this.#length;
    this.#bytes[at] = type;
    this.#view.setUint16(at + 1, bytes.length);
    at += ID_HEAD_BYTES;
    for (let n = 0; n < bytes.length; n++) this.#bytes[at + n] = bytes[n] ?? 0; // short: `set` costs more
    this.#length = at + bytes.length;
  }

  /** The record. A copy. `time`: in milliseconds since 1970. */
  recordAt(time: number): Uint8Array {
    this.#view.setFloat64(0, time);
    this.#view.setUint16(COUNT_AT, this.count);
    return this.#bytes.slice(0, this.#length);
  }
}

/** When a record was written, and how many ids it has. */
export function headOf(record: Uint8Array): { readonly time: number; readonly count: number } {
  const view = new DataView(record.buffer, record.byteOffset, HEAD_BYTES);
  return { time: view.getFloat64(0), count: view.getUint16(COUNT_AT) };
}

/** An id in a record. */
export interface LoggedId {
  /** The bookmark `{_id}`. */
  readonly id: Bookmark;
  /** See before.ts. Null: there was no row, or nobody asked what it was. */
  readonly before: Uint8Array | null;
}

/** The ids of a record, in the order of their sequence numbers. */
export function* idsOf(record: Uint8Array): Generator<LoggedId, void, undefined> {
  const view = new DataView(record.buffer, record.byteOffset);
  let before: Uint8Array | null = null;
  for (let at = HEAD_BYTES; at < record.length;) {
    const type = record[at] ?? 0;
    const start = at + ID_HEAD_BYTES;
    at = start + view.getUint16(at + 1);
    const value = record.subarray(start, at);
    if (type === BEFORE) {
      before = value;
      continue;
    }
    yield { id: bookmarkOfId(type, value), before };
    before = null;
  }
}

/** "_id" and NUL. */
const NAME = Uint8Array.of(0x5f, 0x69, 0x64, 0);

function bookmarkOfId(type: number, value: Uint8Array): Bookmark {
  const bytes = new Uint8Array(4 + 1 + NAME.length + value.length + 1);
  new DataView(bytes.buffer).setInt32(0, bytes.length, true);
  bytes[4] = type;
  bytes.set(NAME, 5);
  bytes.set(value, 5 + NAME.length);
  return bytes as Bookmark;
}

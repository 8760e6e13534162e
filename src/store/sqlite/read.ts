import type { Batch } from '../batch.ts';
import { bookmarkOf, KEY, type Bookmark, type Ordered } from '../bookmark.ts';
import { endOfDocument } from '../bson-array.ts';
import type { Slot, Slots } from '../slots.ts';
import type { Size } from '../store.ts';
import { DamagedRowError, documentIn, HEAD_BYTES, rowWalkIn, type RowWalk } from './checked-rows.ts';
import { bytesIn, type Connection } from './connection.ts';
import { compareKeys, joinKeys, type Key } from '../keys.ts';
import { rowsTable } from './layout.ts';
import { documentsSql, keysOfBookmark, restBehind, sqlOf, type Range } from './range.ts';

/** Expected size of a row in bytes before any was seen. Generated items have 205 bytes. */
const FIRST_GUESS = 256;
/** A value of SQLite, which a batch is, ends at 1 GB. */
const MOST_BYTES = 256 * 1024 * 1024;

/**
 * Reads batches. A batch is one statement: SQLite puts its documents one behind the other. All calls are made in a look.
 */
export class Reader {
  readonly #connection: Connection;
  readonly #slots: Slots;
  readonly #walk: RowWalk;
  /** The mean size of rows. Recent batches count most. */
  #mean = FIRST_GUESS;

  constructor(connection: Connection, slots: Slots) {
    this.#connection = connection;
    this.#slots = slots;
    this.#walk = rowWalkIn(slots);
  }

  /** The first rows of a range behind `skip` rows. */
  batch(range: Range | null, skip: number, size: Size, order: Ordered, hasLargeRows: boolean): Batch {
    const known = range && hasLargeRows ? this.#fitting(range, skip, size) : null;
    const guess = Math.ceil((Math.min(size.bytes, MOST_BYTES) / this.#mean) * 1.125) + 1;
    for (let limit = known?.rows ?? guess; ; limit *= 4) {
      const rows = Math.min(limit, size.rows);
      const piece = range && this.#piece(range, skip, { rows, bytes: size.bytes }, known?.more);
      const { slot, length, more } = piece ?? { slot: this.#slots.take(1), length: 0, more: false };
      try {
        if (range && !more && skip === 0) this.#checkEnd(range, piece);
        if (range?.column === 'k' && !range.isInOrder && piece?.more) this.#checkLast(range, piece);
        // The rows are smaller than those before them.
        const isTooFew = more && !known && rows < size.rows && length < size.bytes;
        if (!isTooFew) return batchOf(slot, piece?.rows ?? 0, length, piece && lastOf(piece, order), more);
      } catch (error) {
        slot.release();
        throw error;
      }
      slot.release();
    }
  }

  /** The row with a key. */
  one(set: number, key: Key): Batch | null {
    const row = this.row(set, key);
    return row && this.batchOf([row], false);
  }

  /** A batch of stored rows. */
  batchOf(rows: readonly Uint8Array[], more: boolean): Batch {
    const stored = Buffer.concat(rows);
    const slot = this.#slots.take(stored.length);
    slot.bytes().set(stored);
    const last = bookmarkOf(documentIn(rows.at(-1) ?? stored), { sort: KEY });
    return batchOf(slot, rows.length, stored.length, last, more);
  }

  /** The stored row with a key. */
  row(set: number, key: Key): Uint8Array | null {
    return bytesIn(this.#connection.get(`select d from ${rowsTable(set)} where k = ?`, key), 'd');
  }

  /** Counts at most `most` rows of a range. Returns what is behind them: null when the range has no more. */
  pass(range: Range, most: number): { readonly rows: number; readonly rest: Range | null } {
    const { column, low, high, reverse } = range;
    const last = reverse ? 'min' : 'max';
    const sql = `select count(*) n, ${last}(k) k from (select ${column} k ${sqlOf(range)} limit ?)`;
    const found = this.#connection.get(sql, low, high, most);
    const key = bytesIn(found, 'k');
    const rows = Number(found?.n);
    return { rows, rest: key && rows === most ? restBehind(range, key) : null };
  }

  /** The first rows of a range, checked, in a slot. Null when there are none. `more`: whether others follow, if that is known. */
  #piece(range: Range, skip: number, size: Size, more?: boolean): Piece | null {
    const sql = `select cast(group_concat(cast(d as text), '') as blob) d, max(bad) bad from (${documentsSql(range, skip)} limit ? offset ?)`;
    // One row more shows whether there are more.
    const asked = more === undefined ? size.rows + 1 : size.rows;
    const batch = this.#connection.get(sql, range.low, range.high, asked, skip);
    if (batch?.bad === 1) throw new DamagedRowError(`a row has another key than ${range.column} says`);
    const found = bytesIn(batch, 'd');
    if (!found) return null;
    const slot = this.#slots.take(found.length);
    try {
      slot.bytes().set(found);
      const byKey = range.column === 'k';
      const direction = range.reverse ? -1 : 1;
      const walked = this.#walk(slot.address, found.length, size, byKey ? direction : 0);
      if (byKey && skip === 0) this.#checkStart(range, slot.bytes(walked.length));
      this.#mean += (walked.length / walked.rows - this.#mean) / 4;
      return { ...walked, slot, more: more === true || walked.length < found.length };
    } catch (error) {
      slot.release();
      throw error;
    }
  }

  /** How many of the first rows have so many bytes, by their sizes, and whether others follow. */
  #fitting(
    range: Range,
    skip: number,
    { rows, bytes }: Size,
  ): { readonly rows: number; readonly more: boolean } {
    const sizes = this.#connection.all(
      `select length(d) n ${sqlOf(range)} limit ? offset ?`,
      ...[range.low, range.high, rows + 1, skip],
    );
    let [count, sum] = [0, 0];
    while (count < Math.min(rows, sizes.length) && sum < Math.min(bytes, MOST_BYTES))
      sum += Number(sizes[count++]?.n);
    return { rows: Math.max(1, count), more: count < sizes.length };
  }

  /**
   * Throws DamagedRowError when the first row of a range of ids is another one than its index says. Where rows lie in
   * order the index only says where they begin, and a look at it again would cost a page a tenth of its time: there, when
   * the row lies outside the range.
   */
  #checkStart(range: Range, rows: Uint8Array): void {
    const document = rows.subarray(HEAD_BYTES, endOfDocument(rows, HEAD_BYTES));
    const id = joinKeys(...keysOfBookmark(bookmarkOf(document, { sort: KEY }), [KEY]));
    const { low, high, reverse, isInOrder } = range;
    const key = isInOrder ? null : this.#outermost(range, reverse ? 'max' : 'min');
    const isIn = compareKeys(id, low) > 0 && compareKeys(id, high) < 0;
    if (isInOrder ? !isIn : !key || compareKeys(id, key) !== 0)
      throw new DamagedRowError('the first row of a batch is not the one that the index of ids has there');
  }

  /** Throws DamagedRowError when the entry of the last row, behind which the next batch begins, is that of another row. */
  #checkLast({ set }: Range, piece: Piece): void {
    const rows = rowsTable(set);
    const id = idOfLast(piece);
    const sql = `select b.k is ? good from ${rows} a join ${rows} b on b.n = a.n where a.k = ?`;
    if (this.#connection.get(sql, id, id)?.good !== 1)
      throw new DamagedRowError('the index of ids has another row at the place of one');
  }

  #keyOfLast(piece: Piece, { column, set }: Range): Key {
    const id = idOfLast(piece);
    if (column === 'k') return id;
    const key = bytesIn(
      this.#connection.get(`select ${column} k from ${rowsTable(set)} where k = ?`, id),
      'k',
    );
    if (!key) throw new DamagedRowError('the last row of a batch is gone');
    return key;
  }

  /** Throws DamagedRowError when a range ends, seen from behind, with another row than the last one that was read. */
  #checkEnd(range: Range, last: Piece | null): void {
    const { column, reverse } = range;
    const key = this.#outermost(range, reverse ? 'min' : 'max');
    if (last ? key && compareKeys(key, this.#keyOfLast(last, range)) === 0 : !key) return;
    throw new DamagedRowError(`rows of ${column} are not in their order`);
  }

  /** The lowest or the highest key of a range, as its index has it. */
  #outermost({ column, set, low, high }: Range, end: 'min' | 'max'): Key | null {
    const sql = `select ${end}(${column}) k from ${rowsTable(set)} where ${column} > ? and ${column} < ?`;
    return bytesIn(this.#connection.get(sql, low, high), 'k');
  }
}

/** Rows of one statement. */
interface Piece {
  readonly slot: Slot;
  readonly rows: number;
  readonly length: number;
  /** Where the last document begins. */
  readonly lastAt: number;
  /** Whether rows of the range follow. */
  readonly more: boolean;
}

function batchOf(slot: Slot, rows: number, length: number, last: Bookmark | null, more: boolean): Batch {
  return { slot, start: 0, length, rows, last, more, release: () => slot.release() };
}

function idOfLast(piece: Piece): Key {
  return joinKeys(...keysOfBookmark(lastOf(piece, { sort: KEY }), [KEY]));
}

function lastOf({ slot, length, lastAt }: Piece, order: Ordered): Bookmark {
  return bookmarkOf(slot.bytes(length).slice(lastAt), order);
}

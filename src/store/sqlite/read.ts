import type { Batch } from '../batch.ts';
import { bookmarkOf, KEY, type Bookmark, type Ordered } from '../bookmark.ts';
import type { Slot, Slots } from '../slots.ts';
import type { Size } from '../store.ts';
import { DamagedRowError, documentIn, type RowChecks } from './checked-rows.ts';
import { bytesIn, type Connection } from './connection.ts';
import type { Key } from '../keys.ts';
import { compareKeys, joinKeys } from '../keys.ts';
import { rowsTable } from './layout.ts';
import { keysOfBookmark, restBehind, sqlOf, type Range } from './range.ts';

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
  readonly #checks: RowChecks;
  /** The mean size of rows. Recent batches count most. */
  #mean = FIRST_GUESS;

  constructor(connection: Connection, slots: Slots, checks: RowChecks) {
    this.#connection = connection;
    this.#slots = slots;
    this.#checks = checks;
  }

  /** The first rows of a range behind `skip` rows. */
  batch(range: Range | null, skip: number, size: Size, order: Ordered, hasLargeRows: boolean): Batch {
    const pieces: Piece[] = [];
    let [rows, length, rest] = [0, 0, range];
    try {
      for (let offset = skip; rest && rows < size.rows && length < size.bytes; offset = 0) {
        const left = { rows: size.rows - rows, bytes: size.bytes - length };
        const piece = this.#piece(rest, offset, left, hasLargeRows);
        if (!piece) break;
        pieces.push(piece);
        rows += piece.rows;
        length += piece.length;
        if (!piece.more || rows >= size.rows || length >= size.bytes) break;
        rest = restBehind(rest, this.#keyOfLast(piece, rest));
      }
      if (rest && skip === 0 && pieces.at(-1)?.more !== true) this.#checkEnd(rest, pieces.at(-1));
      return this.#joined(pieces, order);
    } catch (error) {
      for (const { slot } of pieces) slot.release();
      throw error;
    }
  }

  /** The row with a key. */
  one(set: number, key: Key): Batch | null {
    const row = this.row(set, key);
    if (!row) return null;
    const slot = this.#slots.take(row.length);
    slot.bytes().set(row);
    const last = bookmarkOf(documentIn(row), { sort: KEY });
    return batchOf(slot, 1, row.length, last, false);
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

  /** The next rows of a range, checked, in a slot. Null when there are none. */
  #piece(range: Range, skip: number, size: Omit<Size, 'patient'>, hasLargeRows: boolean): Piece | null {
    const { limit, more } = this.#limit(range, skip, size, hasLargeRows);
    const sql = `select cast(group_concat(cast(d as text), '') as blob) d from (select d ${sqlOf(range)} limit ? offset ?)`;
    // One row more tells whether there are more.
    const asked = more === undefined ? limit + 1 : limit;
    const found = bytesIn(this.#connection.get(sql, range.low, range.high, asked, skip), 'd');
    if (!found) return null;
    const slot = this.#slots.take(found.length);
    try {
      slot.bytes().set(found);
      const walked = this.#checks.walk(slot.address, found.length, limit, size.bytes);
      this.#mean += (walked.length / walked.rows - this.#mean) / 4;
      return { ...walked, slot, more: more === true || walked.length < found.length };
    } catch (error) {
      slot.release();
      throw error;
    }
  }

  /** How many rows to ask for: not many more than have so many bytes. `more`: whether there are others, where that is known. */
  #limit(
    range: Range,
    skip: number,
    { rows, bytes }: Omit<Size, 'patient'>,
    hasLargeRows: boolean,
  ): { readonly limit: number; readonly more?: boolean } {
    const room = Math.min(bytes, MOST_BYTES);
    if (!hasLargeRows) return { limit: Math.min(rows, Math.ceil((room / this.#mean) * 1.125) + 1) };
    const sizes = this.#connection.all(
      `select length(d) n ${sqlOf(range)} limit ? offset ?`,
      ...[range.low, range.high, Math.min(rows, Math.ceil(room / FIRST_GUESS)) + 1, skip],
    );
    let [count, sum] = [0, 0];
    while (count < sizes.length && count < rows && sum < room) sum += Number(sizes[count++]?.n);
    return { limit: Math.max(1, count), more: count < sizes.length };
  }

  #keyOfLast(piece: Piece, { column, set }: Range): Key {
    const id = joinKeys(...keysOfBookmark(lastOf(piece, { sort: KEY }), [KEY]));
    const key = bytesIn(
      this.#connection.get(`select ${column} k from ${rowsTable(set)} where k = ?`, id),
      'k',
    );
    if (!key) throw new Error('the last row of a batch is gone');
    return key;
  }

  /** Throws DamagedRowError when a range ends, seen from behind, with another row than the last one that was read. */
  #checkEnd(range: Range, last: Piece | undefined): void {
    const { column, set, low, high, reverse } = range;
    const end = `select ${reverse ? 'min' : 'max'}(${column}) k from ${rowsTable(set)} where ${column} > ? and ${column} < ?`;
    const key = bytesIn(this.#connection.get(end, low, high), 'k');
    if (last ? key && compareKeys(key, this.#keyOfLast(last, range)) === 0 : !key) return;
    throw new DamagedRowError(`rows of ${column} are not in their order`);
  }

  #joined(pieces: readonly Piece[], order: Ordered): Batch {
    const end = pieces.at(-1);
    if (!end) return batchOf(this.#slots.take(1), 0, 0, null, false);
    const last = lastOf(end, order);
    if (pieces.length === 1) return batchOf(end.slot, end.rows, end.length, last, end.more);
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const slot = this.#slots.take(length);
    let at = 0;
    for (const piece of pieces) {
      slot.bytes().set(piece.slot.bytes(piece.length), at);
      at += piece.length;
      piece.slot.release();
    }
    const rows = pieces.reduce((sum, piece) => sum + piece.rows, 0);
    return batchOf(slot, rows, length, last, end.more);
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

export function batchOf(
  slot: Slot,
  rows: number,
  length: number,
  last: Bookmark | null,
  more: boolean,
): Batch {
  return { slot, start: 0, length, rows, last, more, release: () => slot.release() };
}

function lastOf({ slot, length, lastAt }: Piece, order: Ordered): Bookmark {
  return bookmarkOf(slot.bytes(length).slice(lastAt), order);
}

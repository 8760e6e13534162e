import type { Batch } from '../batch.ts';
import { bookmarkOf, KEY, type Bookmark, type Ordered } from '../bookmark.ts';
import { endOfDocument } from '../bson-array.ts';
import type { Slot, Slots } from '../slots.ts';
import type { Size } from '../store.ts';
import {
  DamagedRowError,
  documentIn,
  HEAD_BYTES,
  rowWalkIn,
  sortPath,
  type RowWalk,
  type Walked,
} from './checked-rows.ts';
import { ABOVE_IDS, compareKeys, LOWEST, type Key } from '../keys.ts';
import { bytesIn, type Connection } from './connection.ts';
import { entryOf } from './keyed.ts';
import { rowsTable } from './layout.ts';
import { beyondSql, documentsSql, inOrderSql, outermostSql, restBehind, sqlOf, type Range } from './range.ts';

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
        if (range?.column === 'k' && range.isInOrder !== true && piece?.more)
          this.#checkLast(range, piece, skip);
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

  /** The stored row with a key. Throws DamagedRowError when that of another row may hide it. */
  row(set: number, key: Key): Uint8Array | null {
    const found = this.#connection.get(`select d from ${rowsTable(set)} where k = ?`, key);
    const row = bytesIn(found, 'd');
    const beside = { set, column: 'k', low: key, high: key };
    if (!found) for (const end of ['low', 'high'] as const) this.#beyond(beside, end);
    else if (!row || !isSame(key, entryOf(documentIn(row), [])))
      throw new DamagedRowError('the index of ids has another row at the place of one');
    return row;
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
    const isInOrder = range.isInOrder === true && skip === 0;
    const [low, high] = isInOrder ? this.#numbers(range) : [range.low, range.high];
    if (!isInOrder && skip === 0) this.#beyond(range, range.reverse ? 'high' : 'low');
    const documents = isInOrder ? inOrderSql(range) : documentsSql(range);
    const sql = `select cast(group_concat(d, '') as blob) d from (${documents} limit ? offset ?)`;
    // One row more shows whether there are more.
    const asked = more === undefined ? size.rows + 1 : size.rows;
    const found = bytesIn(this.#connection.get(sql, low, high, asked, skip), 'd');
    if (!found) return null;
    const path = sortPath(range);
    const slot = this.#slots.take(found.length + path.length);
    try {
      const bytes = slot.bytes();
      bytes.set(found);
      bytes.set(path, found.length);
      const walked = this.#walk(slot, found.length, path.length, size, range.reverse ? -1 : 1);
      this.#mean += (walked.length / walked.rows - this.#mean) / 4;
      const piece = { ...walked, slot, more: more === true || walked.length < found.length };
      if (walked.isUnsure) checkOrder(piece, range);
      if (skip === 0) checkStart(piece, range);
      return piece;
    } catch (error) {
      slot.release();
      throw error;
    }
  }

  /** The numbers between which the rows of a range lie, where rows lie in order. */
  #numbers(range: Range): [low: number, high: number] {
    return [this.#beyond(range, 'low') ?? -1, this.#beyond(range, 'high') ?? Number.MAX_SAFE_INTEGER];
  }

  /**
   * The number of the first row beyond an end of a range. Throws DamagedRowError when its entry is that of another row: the
   * search for the end may have passed rows of the range.
   */
  #beyond(range: Pick<Range, 'set' | 'column' | 'low' | 'high'>, end: 'low' | 'high'): number | null {
    const bound = range[end];
    if (isAroundAll(bound)) return null;
    const found = this.#connection.get(beyondSql(range, end), bound);
    if (!found) {
      this.#checkOutermost(range, end);
      return null;
    }
    if (found.good !== 1) throw new DamagedRowError(`a row has another key than ${range.column} says`);
    return Number(found.n);
  }

  /** Throws DamagedRowError when nothing is found beyond an end of a range, and the index does not begin at that end. */
  #checkOutermost(range: Pick<Range, 'set' | 'column' | 'low' | 'high'>, end: 'low' | 'high'): void {
    const [outermost, nearest] = outermostSql(range, end);
    const first = this.#connection.get(outermost);
    const [key, found] = [bytesIn(first, 'k'), bytesIn(this.#connection.get(nearest, range[end]), 'k')];
    if (first && !(key && found && isSame(key, found)))
      throw new DamagedRowError(`the index of ${range.column} does not find its first row`);
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
   * Throws DamagedRowError when the entry before that of the last row, behind which the next batch begins, is not that of the
   * row before: an entry in between has another row.
   */
  #checkLast(range: Range, piece: Piece, skip: number): void {
    const { column, set, reverse } = range;
    const order = reverse ? `> ? order by ${column}` : `< ? order by ${column} desc`;
    const sql = `select ${column} k from ${rowsTable(set)} where ${column} ${order} limit 1`;
    const before = bytesIn(this.#connection.get(sql, entryAt(piece, piece.lastAt, range)), 'k');
    if (piece.rows === 1 && (skip > 0 || !before || !isBetween(before, range))) return;
    if (before && piece.rows > 1 && isSame(before, entryAt(piece, piece.beforeAt, range))) return;
    throw new DamagedRowError('the index of ids has another row at the place of one');
  }

  /** Throws DamagedRowError when a range ends, seen from behind, with another row than the last one that was read. */
  #checkEnd(range: Range, last: Piece | null): void {
    const { column, reverse, isInOrder } = range;
    if (isInOrder !== true) this.#beyond(range, reverse ? 'low' : 'high');
    const key = this.#outermost(range, reverse ? 'min' : 'max');
    if (last ? key && isSame(key, entryAt(last, last.lastAt, range)) : !key) return;
    throw new DamagedRowError(`rows of ${column} are not in their order`);
  }

  /** The lowest or the highest key of a range, as its index has it. */
  #outermost({ column, set, low, high }: Range, end: 'min' | 'max'): Key | null {
    const sql = `select ${end}(${column}) k from ${rowsTable(set)} where ${column} > ? and ${column} < ?`;
    return bytesIn(this.#connection.get(sql, low, high), 'k');
  }
}

/** Rows of one statement. `more`: whether rows of the range follow. */
interface Piece extends Walked {
  readonly slot: Slot;
  readonly more: boolean;
}

function batchOf(slot: Slot, rows: number, length: number, last: Bookmark | null, more: boolean): Batch {
  return { slot, start: 0, length, rows, last, more, release: () => slot.release() };
}

function lastOf({ slot, length, lastAt }: Piece, order: Ordered): Bookmark {
  return bookmarkOf(slot.bytes(length).slice(lastAt), order);
}

/** What an index has of the row whose document begins there. */
function entryAt({ slot, length }: Piece, at: number, { paths }: Range): Key {
  const rows = slot.bytes(length);
  return entryOf(rows.subarray(at, endOfDocument(rows, at)), paths);
}

/** Throws DamagedRowError when a row does not lie behind the one before. */
function checkOrder(piece: Piece, range: Range): void {
  let before: Key | null = null;
  for (
    let at = HEAD_BYTES;
    at < piece.length;
    at = endOfDocument(piece.slot.bytes(piece.length), at) + HEAD_BYTES
  ) {
    const entry = entryAt(piece, at, range);
    if (before && compareKeys(before, entry) * (range.reverse ? -1 : 1) >= 0)
      throw new DamagedRowError(`rows of ${range.column} are not in their order`);
    before = entry;
  }
}

/** Throws DamagedRowError when the first row lies outside of the range: its entry is that of another row. */
function checkStart(piece: Piece, range: Range): void {
  if (!isBetween(entryAt(piece, HEAD_BYTES, range), range))
    throw new DamagedRowError(`the first row of ${range.column} lies outside of its range`);
}

function isBetween(key: Key, { low, high }: Range): boolean {
  return compareKeys(key, low) > 0 && compareKeys(key, high) < 0;
}

function isSame(one: Key, other: Key): boolean {
  return compareKeys(one, other) === 0;
}

/** Whether an end of a range is that of all rows. */
function isAroundAll(bound: Key): boolean {
  return isSame(bound, LOWEST) || isSame(bound, ABOVE_IDS);
}

import type { Batch } from '../batch.ts';
import { bookmarkOf, type Bookmark, type Ordered } from '../bookmark.ts';
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
import { bytesIn, freeBytes, type Connection } from './connection.ts';
import { entryOf } from './keyed.ts';
import { rowsTable } from './layout.ts';
import { anySql, beyondSql, betweenSql, documentsSql, entrySql, restBehind, sqlOf } from './range.ts';
import type { Column, Range, Sign } from './range.ts';

/** Expected size of a row in bytes before any was seen. Generated items have 205 bytes. */
const FIRST_GUESS = 256;
/** A value of SQLite, which a batch is, ends at 1 GB. */
const MOST_BYTES = 256 * 1024 * 1024;

/** A batch is one statement: SQLite puts its documents one behind the other. All calls are made in a look. */
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
  batch(range: Range | null, skip: number, size: Size, order: Ordered): Batch {
    if (!range) return this.batchOf([], false, order);
    const known = range.hasLargeRows === true ? this.#fitting(range, skip, size) : null;
    const guess = Math.ceil((Math.min(size.bytes, MOST_BYTES) / this.#mean) * 1.125) + 1;
    for (let limit = known?.rows ?? guess; ; limit *= 4) {
      const rows = Math.min(limit, size.rows);
      const piece = this.#piece(range, skip, { rows, bytes: size.bytes }, known?.more);
      if (!piece) {
        if (skip === 0) this.#checkGap(range);
        return this.batchOf([], false, order);
      }
      const { slot, length, lastAt, more } = piece;
      try {
        if (!more) this.#checkGap(restBehind(range, entryAt(piece, lastAt, range)));
        // The rows are smaller than those before them.
        const isTooFew = more && !known && rows < size.rows && length < size.bytes;
        if (!isTooFew) {
          const last = bookmarkOf(slot.bytes(length).slice(lastAt), order);
          return batchOf(slot, piece.rows, length, last, more);
        }
      } catch (error) {
        slot.release();
        throw error;
      }
      slot.release();
    }
  }

  batchOf(rows: readonly Uint8Array[], more: boolean, order: Ordered): Batch {
    const stored = Buffer.concat(rows);
    const slot = this.#slots.take(stored.length);
    slot.bytes().set(stored);
    const last = rows.at(-1);
    const bookmark = last ? bookmarkOf(documentIn(last), order) : null;
    return batchOf(slot, rows.length, stored.length, bookmark, more);
  }

  /** The stored row with a key. Throws DamagedRowError when that of another row may hide it. */
  row(set: number, key: Key): Uint8Array | null {
    const found = this.#connection.get(`select d from ${rowsTable(set)} where k = ?`, key);
    const row = bytesIn(found, 'd');
    if (!found) this.#checkGap({ set, column: 'k', low: key, high: key });
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
    const isInOrder = range.isInOrder === true && !range.reverse;
    const low = !range.reverse ? this.#beyond(range, 'low') : null;
    const high = range.reverse || isInOrder ? this.#beyond(range, 'high') : null;
    // One row more shows whether there are more.
    const asked = more === undefined ? size.rows + 1 : size.rows;
    const between =
      isInOrder && more === undefined && skip === 0 ? this.#between(range, asked, low, high) : null;
    const found = between?.documents ?? this.#documents(range, skip, asked);
    if (!found) return null;
    const path = sortPath(range);
    const { length } = found;
    const slot = this.#slots.take(length + path.length);
    try {
      const bytes = slot.bytes();
      bytes.set(found);
      freeBytes(found);
      bytes.set(path, length);
      const walked = this.#walk(slot, length, path.length, size, range.reverse ? -1 : 1);
      this.#mean += (walked.length / walked.rows - this.#mean) / 4;
      const piece = { ...walked, slot, more: (between?.more ?? more) === true || walked.length < length };
      if (walked.isUnsure) checkOrder(piece, range);
      this.#checkPlaces(range, piece, skip, range.reverse ? high : low);
      return piece;
    } catch (error) {
      slot.release();
      throw error;
    }
  }

  /**
   * The documents of rows that lie in order, by as many numbers as rows are asked for, and whether others follow. Null when
   * fewer than half of the numbers have rows.
   */
  #between(range: Range, asked: number, low: Entry | null, high: Entry | null) {
    const [from, end] = [low?.n ?? 0, high?.n ?? Number.MAX_SAFE_INTEGER];
    const to = Math.min(end, from + asked + 1);
    const found = this.#connection.get(betweenSql(range), from, to);
    const [documents, rows] = [bytesIn(found, 'd'), Number(found?.rows)];
    if (!documents || rows < asked / 2) return null;
    const more = rows < asked && this.#connection.get(anySql(range), to - 1, end) !== undefined;
    return { documents, more };
  }

  /** The documents of at most `asked` rows. */
  #documents(range: Range, skip: number, asked: number): Uint8Array | null {
    const sql = `select cast(group_concat(d, '') as blob) d from (${documentsSql(range)} limit ? offset ?)`;
    return bytesIn(this.#connection.get(sql, range.low, range.high, asked, skip), 'd');
  }

  /**
   * The entry at an end of a range or beyond it. Throws DamagedRowError when it is not that of its row, or when the one behind
   * it lies nearer: it is there in the place of one of the range.
   */
  #beyond(range: Bounds, end: 'low' | 'high'): Entry | null {
    if (isAroundAll(range[end])) return null;
    const [found, behind] = this.#connection.all(beyondSql(range, end), range[end]);
    if (!found) return null;
    const [key, next] = [bytesIn(found, 'k'), bytesIn(behind, 'k')];
    const isInPlace = key && (!next || compareKeys(next, key) * (end === 'low' ? -1 : 1) > 0);
    if (!isInPlace || found.good !== 1)
      throw new DamagedRowError(`a row has another key than ${range.column} says`);
    return { key, n: Number(found.n) };
  }

  /** How many of the first rows fit the bytes of a size, and whether others follow. */
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
   * Throws DamagedRowError when the first or the last row lies outside of the range, or when the index, gone back from the
   * last row, has another number of entries up to the one before the range. Each search goes its own way down an index, so a
   * page that lies in the place of another one hides no rows.
   */
  #checkPlaces(range: Range, piece: Piece, skip: number, outer: Entry | null): void {
    const [first, last] = [entryAt(piece, HEAD_BYTES, range), entryAt(piece, piece.lastAt, range)];
    const [back, sign, forward] = range.reverse
      ? (['', '>=', ' desc'] as const)
      : ([' desc', '<=', ''] as const);
    const before = this.#entry(range, back, sign, last, piece.rows + skip);
    const isWhole = isSame(before, outer?.key ?? null);
    const isFirst = outer !== null || skip > 0 || isSame(first, this.#entry(range, forward));
    if (!isWhole || !isFirst || !isBetween(last, range) || !isBetween(first, range))
      throw new DamagedRowError(`rows of ${range.column} are not in their places`);
  }

  /** Throws DamagedRowError when there may be an entry in a range in which no row was found. */
  #checkGap(range: Bounds): void {
    const [low, high] = [this.#beyond(range, 'low'), this.#beyond(range, 'high')];
    const above = low ? this.#entry(range, '', '>', low.key) : this.#entry(range, '');
    const below = high ? this.#entry(range, ' desc', '<', high.key) : this.#entry(range, ' desc');
    if (!isSame(above, high?.key ?? null) || !isSame(below, low?.key ?? null))
      throw new DamagedRowError(`entries of ${range.column} are not in their places`);
  }

  #entry(column: Column, order: '' | ' desc', sign?: Sign, key?: Key, offset = 0): Key | null {
    const values = key ? [key, offset] : [offset];
    return bytesIn(this.#connection.get(entrySql(column, order, sign), ...values), 'k');
  }
}

type Bounds = Column & Pick<Range, 'low' | 'high'>;

/** An entry of an index, and the number of its row. Of an end of a range, null: all rows are within, or it is not needed. */
interface Entry {
  readonly key: Key;
  readonly n: number;
}

/** Rows of one statement. `more`: whether rows of the range follow. */
interface Piece extends Walked {
  readonly slot: Slot;
  readonly more: boolean;
}

function batchOf(slot: Slot, rows: number, length: number, last: Bookmark | null, more: boolean): Batch {
  return { slot, start: 0, length, rows, last, more, release: () => slot.release() };
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

function isBetween(key: Key, { low, high }: Range): boolean {
  return compareKeys(key, low) > 0 && compareKeys(key, high) < 0;
}

/** Null: there is none. */
function isSame(one: Key | null, other: Key | null): boolean {
  return one === other || (one !== null && other !== null && compareKeys(one, other) === 0);
}

/** Whether an end of a range is that of all rows. */
function isAroundAll(bound: Key): boolean {
  return isSame(bound, LOWEST) || isSame(bound, ABOVE_IDS);
}

import type { Batch } from '../../batch.ts';
import { bookmarkOf, type RowOrder } from '../../bookmark.ts';
import type { Slot, Slots } from '../../turns/slots.ts';
import type { Size } from '../../store.ts';
import {
  DamagedRowError,
  documentIn,
  rowReversalIn,
  rowWalkIn,
  type RowWalk,
  type WalkResult,
} from '../file/checked-rows.ts';
import type { Key } from '../../values/keys.ts';
import { bytesIn, freeBytes, type Connection } from '../file/connection.ts';
import { rowsTable } from '../file/layout.ts';
import { anySql, betweenSql, documentsSql, numberSql, restBehind, sqlOf, type Range } from './range.ts';

/** Expected size of a row in bytes before any was seen. Generated items have 205 bytes. */
const FIRST_GUESS = 256;
/** A value of SQLite, which a batch is, ends at 1 GB. */
const MOST_BYTES = 256 * 1024 * 1024;

/** A batch is one statement: SQLite puts its documents one behind the other. All calls are made in a look. */
export class Reader {
  readonly #connection: Connection;
  readonly #slots: Slots;
  readonly #walk: RowWalk;
  readonly #reverse: ReturnType<typeof rowReversalIn>;
  /** The mean size of rows. Recent batches count most. */
  #mean = FIRST_GUESS;

  constructor(connection: Connection, slots: Slots) {
    this.#connection = connection;
    this.#slots = slots;
    this.#walk = rowWalkIn(slots);
    this.#reverse = rowReversalIn(slots);
  }

  /** The first rows of a range behind `skip` rows. */
  batch(range: Range | null, skip: number, size: Size, order: RowOrder): Batch {
    if (!range) return this.batchOf([], false, order);
    const known = range.hasLargeRows === true ? this.#fitting(range, skip, size) : null;
    const guess = Math.ceil((Math.min(size.bytes, MOST_BYTES) / this.#mean) * 1.125) + 1;
    for (let limit = known?.rows ?? guess; ; limit *= 4) {
      const rows = Math.min(limit, size.rows);
      const piece = this.#piece(range, skip, { rows, bytes: size.bytes }, known?.more);
      if (!piece) return this.batchOf([], false, order);
      const { slot, length, lastAt, more } = piece;
      // The rows are smaller than those before them.
      const isTooFew = more && !known && rows < size.rows && length < size.bytes;
      if (!isTooFew) return batchOf(piece, slot.bytes(length).slice(lastAt), order);
      slot.release();
    }
  }

  batchOf(rows: readonly Uint8Array[], more: boolean, order: RowOrder): Batch {
    const stored = Buffer.concat(rows);
    const slot = this.#slots.take(stored.length);
    slot.bytes().set(stored);
    const last = rows.at(-1);
    return batchOf(
      { slot, rows: rows.length, length: stored.length, more },
      last ? documentIn(last) : null,
      order,
    );
  }

  /** The stored row with a key, or null. */
  row(collection: number, key: Key): Uint8Array | null {
    const found = this.#connection.get(`select d from ${rowsTable(collection)} where k = ?`, key);
    const row = bytesIn(found, 'd');
    if (found && !row) throw new DamagedRowError('a row is not one that was written');
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
  #piece(range: Range, skip: number, size: Size, more?: boolean): (Piece & WalkResult) | null {
    // One row more shows whether there are more.
    const asked = more === undefined ? size.rows + 1 : size.rows;
    const liesInOrder = range.isInOrder === true && !range.reverse && more === undefined && skip === 0;
    const found = (liesInOrder ? this.#between(range, asked) : null) ?? this.#documents(range, skip, asked);
    if (!found) return null;
    const { slot, length } = found;
    try {
      const walked = this.#walk(slot, length, size);
      this.#mean += (walked.length / walked.rows - this.#mean) / 4;
      return { ...walked, slot, more: (found.more ?? more) === true || walked.length < length };
    } catch (error) {
      slot.release();
      throw error;
    }
  }

  /** A slot with documents, whose memory is freed. */
  #inSlot(documents: Uint8Array): Slot {
    const slot = this.#slots.take(documents.length);
    slot.bytes().set(documents);
    freeBytes(documents);
    return slot;
  }

  /** The same, with the last document first. Null: one of them does not have the length that was written. */
  #reversed(documents: Uint8Array): Slot | null {
    const { length } = documents;
    const from = this.#inSlot(documents);
    let slot: Slot | null = null;
    try {
      slot = this.#slots.take(length);
      if (this.#reverse(from, length, slot)) return slot;
      slot.release();
      return null;
    } finally {
      from.release();
    }
  }

  /**
   * The documents of rows that lie in order, by as many numbers as rows are asked for, and whether others follow. Null when
   * fewer than half of the numbers have rows, or when one is damaged: the rows before that one are still to be read.
   */
  #between(range: Range, asked: number): Documents | null {
    const from = this.#number(range, 'low') ?? 0;
    const end = this.#number(range, 'high') ?? Number.MAX_SAFE_INTEGER;
    const to = Math.min(end, from + asked + 1);
    const found = this.#connection.get(betweenSql(range), from, to);
    const documents = bytesIn(found, 'd');
    const rows = Number(found?.rows);
    if (!documents || rows < asked / 2) return null;
    const { length } = documents;
    const slot = this.#reversed(documents);
    if (!slot) return null;
    const more = rows < asked && this.#connection.get(anySql(range), to - 1, end) !== undefined;
    return { slot, length, more };
  }

  /** The number of the row at an end of a range or beyond it. Null: no row lies there. */
  #number(range: Range, end: 'low' | 'high'): number | null {
    const found = this.#connection.get(numberSql(range, end), range[end]);
    return found ? Number(found.n) : null;
  }

  /** The documents of at most `asked` rows. */
  #documents(range: Range, skip: number, asked: number): Documents | null {
    const sql = `select cast(group_concat(d, '') as blob) d from (${documentsSql(range)} limit ? offset ?)`;
    const found = bytesIn(this.#connection.get(sql, range.low, range.high, asked, skip), 'd');
    if (!found) return null;
    const { length } = found;
    return { slot: this.#inSlot(found), length };
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
    let count = 0;
    let sum = 0;
    while (count < Math.min(rows, sizes.length) && sum < Math.min(bytes, MOST_BYTES))
      sum += Number(sizes[count++]?.n);
    return { rows: Math.max(1, count), more: count < sizes.length };
  }
}

/** Documents in a slot, not checked yet. `more`: whether others follow behind those that were asked for, if that is known. */
interface Documents {
  readonly slot: Slot;
  readonly length: number;
  readonly more?: boolean;
}

/** Rows in a slot. `more`: whether rows of the range follow. */
interface Piece extends Pick<WalkResult, 'rows' | 'length'> {
  readonly slot: Slot;
  readonly more: boolean;
}

/** The batch of a piece, whose last row is `last`. */
function batchOf({ slot, rows, length, more }: Piece, last: Uint8Array | null, order: RowOrder): Batch {
  try {
    const bookmark = last && bookmarkOf(last, order);
    return { slot, start: 0, length, rows, last: bookmark, more, release: () => slot.release() };
  } catch (error) {
    slot.release();
    throw error;
  }
}

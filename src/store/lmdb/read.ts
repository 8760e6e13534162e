import type { Batch } from '../batch.ts';
import { bookmarkOf } from '../bookmark.ts';
import { KEY, type Bookmark, type Ordered } from '../bookmark.ts';
import { Filler, RowSize } from './filler.ts';
import { rangesOf } from './range.ts';
import type { Range } from './range.ts';
import type { Key } from '../keys.ts';
import { keyOfId } from './row.ts';
import type { Database, Tables } from './tables.ts';
import { RangeWalker, type Walker } from './walk.ts';
import type { FairScheduler } from './fair-scheduler.ts';
import type { Slots } from '../slots.ts';
import type { Count, From, Plan, Size } from '../store.ts';

/** Entries to pass over in one look: 3 to 8 ms. More take several looks, with turns for others between them. */
const SKIP_AT_ONCE = 40_000;

/** The same in the table of rows, whose entries are larger: about 2 ms. */
const SPLIT_AT_ONCE = 10_000;

const ONE_ROW: Size = { rows: 1, bytes: 1 };
const BY_ID: Ordered = { sort: KEY };

/** What differs between the items and the rows of a resource. */
export interface ReaderShape {
  readonly walker: Walker;
  readonly rangesOf: (plan: Plan, after: From['after']) => readonly Range[];
  /** Null when no row can have the id. */
  readonly keyOfId: (id: Bookmark) => Key | null;
}

/**
 * Reads batches. A look (positioning, copying the rows into a slot, closing the cursor) is one synchronous piece of
 * work. None keeps a cursor or transaction across an await: it would keep every page of its snapshot from reuse and make
 * the file grow. The library itself resets its transaction by a timer of 0 ms, and keeps closed cursors for reuse.
 */
export class LmdbReader {
  readonly #tables: Tables;
  readonly #rows: Database;
  readonly #walker: Walker;
  readonly #slots: Slots;
  readonly #scheduler: FairScheduler;
  readonly #begin: () => void;
  readonly #expected = new RowSize();

  readonly #rangesOf: ReaderShape['rangesOf'];
  readonly #keyOfId: ReaderShape['keyOfId'];

  /**
   * `rows` is the table that holds the rows themselves. Only items also have indexes. `begin` is called at the start
   * of each look. It throws when the store can no longer be read, and while the rows are being loaded.
   */
  constructor(
    tables: Tables,
    rows: 'items' | 'users' | 'exports' | 'rows',
    slots: Slots,
    scheduler: FairScheduler,
    begin: () => void,
    shape: ReaderShape = { walker: new RangeWalker(tables, tables[rows]), rangesOf, keyOfId },
  ) {
    this.#begin = begin;
    this.#tables = tables;
    this.#rows = tables[rows];
    this.#walker = shape.walker;
    this.#rangesOf = shape.rangesOf;
    this.#keyOfId = shape.keyOfId;
    this.#slots = slots;
    this.#scheduler = scheduler;
  }

  /** See ItemStore.read. */
  async read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<Batch> {
    if (from.after && from.skip)
      throw new TypeError('a read begins after a row or after so many rows, not both');
    signal.throwIfAborted();
    let ranges = this.#rangesOf(plan, from.after);
    let skip = from.skip ?? 0;
    if (ranges[0] && skip > SKIP_AT_ONCE) {
      const { rest } = await this.#pass(ranges[0], skip, signal);
      skip = 0;
      ranges = rest ? [rest] : [];
    }
    return await this.#scheduler.take(() => this.#look(plan, ranges, skip, size), signal, size.patient);
  }

  /** The first rows of a range. Its bookmark is that of the order of ids. */
  readRange(range: Range, size: Size, signal: AbortSignal): Promise<Batch> {
    return this.#scheduler.take(() => this.#look(BY_ID, [range], 0, size), signal);
  }

  /** See ItemStore.get. A lookup takes some microseconds, so it does not wait for a turn. */
  async get(id: Bookmark, signal: AbortSignal): Promise<Batch | null> {
    signal.throwIfAborted();
    const key = this.#keyOfId(id);
    if (!key) return null;
    this.#begin();
    return await Promise.resolve(
      this.#fill(ONE_ROW, (filler) => {
        this.#tables.sink = filler;
        return this.#rows.get(key) === undefined ? null : batchOf(filler, BY_ID, false);
      }),
    );
  }

  /** The number of rows of a plan, counted in the index. Stops with `atLeast` once `isLate` returns true. */
  async count(plan: Plan, isLate: () => boolean, signal: AbortSignal): Promise<Count> {
    let rows = 0;
    for (const range of this.#rangesOf(plan, undefined)) {
      const passed = await this.#pass(range, Infinity, signal, isLate);
      rows += passed.rows;
      if (passed.rest) return { rows, is: 'atLeast' };
    }
    return { rows, is: 'exact' };
  }

  /**
   * Passes over at most `most` rows of a range and stops once `isLate` returns true. Returns how many it passed, and
   * the rest of the range (null: it has ended). A step that reaches the end is halved until the last row is found.
   */
  async #pass(
    range: Range,
    most: number,
    signal: AbortSignal,
    isLate: () => boolean = () => false,
  ): Promise<{ readonly rows: number; readonly rest: Range | null }> {
    let rest = range;
    let rows = 0;
    for (let longest = SKIP_AT_ONCE; rows < most;) {
      const step = Math.min(longest, most - rows);
      const start = await this.#scheduler.take(() => this.#keyBehind(rest, step), signal);
      if (start) {
        rows += step;
        rest = { ...rest, start };
        if (step === SKIP_AT_ONCE && isLate()) break;
      } else if (step > 1) {
        longest = Math.floor(step / 2);
      } else {
        return { rows, rest: null };
      }
    }
    return { rows, rest };
  }

  /** See ItemStore.split. `rows` is the size of the plan. Counts keys: parts are equal except for later changes. */
  async split(plan: Plan, parts: number, rows: number, signal: AbortSignal): Promise<Bookmark[]> {
    const ids: Bookmark[] = [];
    let range = this.#rangesOf(plan, undefined)[0] ?? null;
    let at = 0;
    for (let part = 1; part < parts; part++) {
      for (let left = Math.floor((part * rows) / parts) - at; range && left > 0;) {
        const [rest, step]: [Range, number] = [range, Math.min(left, SPLIT_AT_ONCE)];
        const start = await this.#scheduler.take(() => this.#keyBehind(rest, step), signal);
        range = start && { ...rest, start };
        left -= step;
        at += step;
      }
      const rest = range;
      if (!rest || at === 0) continue;
      const batch = await this.#scheduler.take(() => this.#look(plan, [rest], 0, ONE_ROW), signal);
      batch.release();
      if (batch.last && !isSame(batch.last, ids.at(-1))) ids.push(batch.last);
    }
    return ids;
  }

  #look(plan: Ordered, ranges: readonly Range[], skip: number, size: Size): Batch {
    this.#begin();
    return this.#fill(size, (filler) => {
      const more = ranges.some((range) => this.#walker.copyRows(range, skip, filler));
      this.#expected.learn(filler.rows, filler.length);
      return batchOf(filler, plan, more);
    });
  }

  /** The key `skip` entries after the range's start. Null when the range has fewer. */
  #keyBehind(range: Range, skip: number): Key | null {
    this.#begin();
    return this.#walker.keyBehind(range, skip);
  }

  /** Calls `make` with a slot to fill. Releases the slot when `make` returns no batch. */
  #fill<T extends Batch | null>(size: Size, make: (filler: Filler) => T): T {
    const filler = new Filler(this.#slots, size, this.#expected);
    let batch: T | null = null;
    try {
      batch = make(filler);
      return batch;
    } finally {
      if (!batch) filler.slot.release();
    }
  }
}

function batchOf({ slot, rows, length, lastAt }: Filler, plan: Ordered, more: boolean): Batch {
  const last = rows === 0 ? null : bookmarkOf(slot.bytes(length).subarray(lastAt), plan);
  return { slot, start: 0, length, rows, last, more, release: () => slot.release() };
}

function isSame(a: Bookmark, b: Bookmark | undefined): boolean {
  return b !== undefined && Buffer.compare(a, b) === 0;
}

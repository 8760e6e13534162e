import type { Batch } from '../batch.ts';
import { bookmarkOf } from '../bookmark.ts';
import type { Bookmark, Ordered } from '../bookmark.ts';
import { Filler, RowSize } from './filler.ts';
import { rangeOf } from './range.ts';
import type { Range } from './range.ts';
import type { Key } from './keys.ts';
import { keyOfId } from './row.ts';
import type { Database, Tables } from './tables.ts';
import type { Turns } from './turns.ts';
import type { Slots } from '../slots.ts';
import type { Count, From, Plan, Size } from '../store.ts';

/** Entries passed over in one look: 3 to 8 ms. More are done in several, with turns for others between. */
const SKIP_AT_ONCE = 40_000;

/** The same in the table of rows, whose entries are larger: about 2 ms. */
const SPLIT_AT_ONCE = 10_000;

const ONE_ROW: Size = { rows: 1, bytes: 1 };
const BY_ID: Ordered = { order: 'id' };

/**
 * Reads batches. A look (positioning, copying the rows into a slot, closing the cursor) is one synchronous piece of
 * work: no cursor or transaction lives across an await, where it would keep every page of its snapshot from reuse and
 * make the file grow.
 */
export class LmdbReader {
  readonly #tables: Tables;
  readonly #rows: Database;
  readonly #slots: Slots;
  readonly #turns: Turns;
  readonly #begin: () => void;
  readonly #expected = new RowSize();

  /**
   * `rows` is the table that has the rows themselves; only items are also found by indexes. `begin` is called at the
   * start of each look, and throws when there is nothing to look at any more.
   */
  constructor(
    tables: Tables,
    rows: 'items' | 'users' | 'exports',
    slots: Slots,
    turns: Turns,
    begin: () => void,
  ) {
    this.#begin = begin;
    this.#tables = tables;
    this.#rows = tables[rows];
    this.#slots = slots;
    this.#turns = turns;
  }

  /** See ItemStore.read. */
  async read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<Batch> {
    if (from.after && from.skip)
      throw new TypeError('a read begins after a row or after so many rows, not both');
    signal.throwIfAborted();
    let range = rangeOf(plan, from.after);
    let skip = from.skip ?? 0;
    while (range && skip > SKIP_AT_ONCE) {
      const rest: Range = range;
      const start = await this.#turns.take(() => this.#keyBehind(rest, SKIP_AT_ONCE), signal);
      range = start && { ...rest, start };
      skip -= SKIP_AT_ONCE;
    }
    return await this.#turns.take(() => this.#look(plan, range, skip, size), signal, size.patient);
  }

  /** See ItemStore.get. A lookup takes some microseconds: no turn is waited for. */
  async get(id: Bookmark, signal: AbortSignal): Promise<Batch | null> {
    signal.throwIfAborted();
    const key = keyOfId(id);
    if (!key) return null;
    this.#begin();
    return await Promise.resolve(
      this.#fill(ONE_ROW, (filler) => {
        this.#tables.sink = filler;
        return this.#rows.get(key) === undefined ? null : batchOf(filler, BY_ID, false);
      }),
    );
  }

  /**
   * How many rows a plan has, counted in the index; at least so many once `isLate` says so. A step that finds the range's
   * end is halved, again and again, until the last row is found.
   */
  async count(plan: Plan, isLate: () => boolean, signal: AbortSignal): Promise<Count> {
    let range = rangeOf(plan, undefined);
    let rows = 0;
    for (let step = SKIP_AT_ONCE; range && step >= 1;) {
      const rest: Range = range;
      const at = step;
      const start = await this.#turns.take(() => this.#keyBehind(rest, at), signal);
      if (start) {
        rows += step;
        range = { ...rest, start };
        if (step === SKIP_AT_ONCE && isLate()) return { rows, is: 'atLeast' };
      } else {
        step = Math.floor(step / 2);
      }
    }
    return { rows, is: 'exact' };
  }

  /** See ItemStore.split: `rows` is how many the plan has. Counted in the keys, so parts are equal but for what changes. */
  async split(plan: Plan, parts: number, rows: number, signal: AbortSignal): Promise<Bookmark[]> {
    const ids: Bookmark[] = [];
    let range = rangeOf(plan, undefined);
    let at = 0;
    for (let part = 1; part < parts; part++) {
      for (let left = Math.floor((part * rows) / parts) - at; range && left > 0;) {
        const [rest, step]: [Range, number] = [range, Math.min(left, SPLIT_AT_ONCE)];
        const start = await this.#turns.take(() => this.#keyBehind(rest, step), signal);
        range = start && { ...rest, start };
        left -= step;
        at += step;
      }
      const rest = range;
      if (!rest || at === 0) continue;
      const batch = await this.#turns.take(() => this.#look(plan, rest, 0, ONE_ROW), signal);
      batch.release();
      if (batch.last && !isSame(batch.last, ids.at(-1))) ids.push(batch.last);
    }
    return ids;
  }

  #look(plan: Plan, range: Range | null, skip: number, size: Size): Batch {
    this.#begin();
    return this.#fill(size, (filler) => {
      const more = range !== null && this.#copyRows(range, skip, filler);
      this.#expected.learn(filler.rows, filler.length);
      return batchOf(filler, plan, more);
    });
  }

  /** What `make` makes of a slot to be filled; the slot is given back when that is no batch. */
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

  /** Copies rows until the filler is full or the range ends; whether there are rows behind the last one. */
  #copyRows(range: Range, skip: number, filler: Filler): boolean {
    const { found } = this.#tables;
    const byIndex = range.table !== 'items';
    this.#tables.sink = filler;
    this.#tables.prefix = byIndex ? range.prefix : null;
    const steps = this.#steps(range, skip, !byIndex);
    try {
      for (;;) {
        const full = filler.full;
        if (steps.next().done === true) return false;
        if (full) return true;
        if (byIndex && this.#rows.get(found) === undefined)
          throw new Error(`an entry of the index ${range.table} leads to no item`);
      }
    } finally {
      steps.return?.();
    }
  }

  /** The key `skip` entries behind the range's start; null when the range has fewer. */
  #keyBehind(range: Range, skip: number): Key | null {
    this.#begin();
    this.#tables.prefix = 0;
    const steps = this.#steps(range, skip - 1, false);
    try {
      if (steps.next().done === true) return null;
      return this.#tables.found.bytes.slice(0, this.#tables.found.length);
    } finally {
      steps.return?.();
    }
  }

  #steps({ table, start, end, reverse }: Range, offset: number, values: boolean): Iterator<unknown> {
    const options = { start, end, reverse, exclusiveStart: true, offset, values };
    const source = table === 'items' ? this.#rows : this.#tables[table];
    return source.getRange(options)[Symbol.iterator]();
  }
}

function batchOf({ slot, rows, length, lastAt }: Filler, plan: Ordered, more: boolean): Batch {
  const last = rows === 0 ? null : bookmarkOf(slot.bytes(length).subarray(lastAt), plan);
  return { slot, start: 0, length, rows, last, more, release: () => slot.release() };
}

function isSame(a: Bookmark, b: Bookmark | undefined): boolean {
  return b !== undefined && Buffer.compare(a, b) === 0;
}

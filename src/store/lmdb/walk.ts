import type { Filler } from './filler.ts';
import type { Key } from './keys.ts';
import type { Range } from './range.ts';
import { isPricedInDoubles } from './row.ts';
import type { Database, RowSink, Tables } from './tables.ts';

/** Walks the rows of ranges. */
export interface Walker {
  /** Copies rows until the filler is full or the range ends. Returns whether rows follow the last one. */
  copyRows(range: Range, skip: number, filler: Filler): boolean;
  /** The key `skip` entries after the range's start. Null when the range has fewer. */
  keyBehind(range: Range, skip: number): Key | null;
}

/**
 * Walks the entries of ranges. Every call is one synchronous piece of work inside a look (see LmdbReader), and closes
 * its cursor.
 */
export class RangeWalker implements Walker {
  readonly #tables: Tables;
  readonly #rows: Database;

  /** `rows` is the table that holds the rows themselves. */
  constructor(tables: Tables, rows: Database) {
    this.#tables = tables;
    this.#rows = rows;
  }

  /** Copies rows until the filler is full or the range ends. Returns whether rows follow the last one. */
  copyRows(range: Range, skip: number, filler: Filler): boolean {
    // Kept in variables, because the loop runs for every row.
    const rows = this.#rows;
    const { found } = this.#tables;
    const { only } = range;
    const byIndex = range.table !== 'items';
    this.#tables.sink = filler;
    this.#tables.prefix = byIndex ? range.prefix : null;
    const steps = this.#steps(range, skip, !byIndex);
    try {
      for (;;) {
        const full = filler.full;
        if (steps.next().done === true) return false;
        if (only && !this.#isOf(only, filler)) continue;
        if (full) return true;
        if (byIndex && rows.get(found) === undefined)
          throw new Error(`an entry of the index ${range.table} leads to no item`);
      }
    } finally {
      steps.return?.();
    }
  }

  /** The key `skip` entries after the range's start. Null when the range has fewer. */
  keyBehind(range: Range, skip: number): Key | null {
    this.#tables.prefix = 0;
    if (range.only) return this.#matchBehind(range, range.only, skip);
    const steps = this.#steps(range, skip - 1, false);
    try {
      return steps.next().done === true ? null : this.#tables.found.copied();
    } finally {
      steps.return?.();
    }
  }

  /** The same for a range that only some of its entries belong to. */
  #matchBehind(range: Range, only: NonNullable<Range['only']>, skip: number): Key | null {
    const { found } = this.#tables;
    const steps = this.#steps(range, 0, false);
    try {
      for (let left = skip; steps.next().done !== true;) {
        const key = found.copied();
        found.copy(key, range.prefix, key.length); // one price: a double's key, or that of the same number
        if (this.#isOf(only, null) && --left === 0) return key;
      }
      return null;
    } finally {
      steps.return?.();
    }
  }

  /** Whether the price of the row found has the type of `only`. `sink` is the sink to restore afterwards. */
  #isOf(only: NonNullable<Range['only']>, sink: RowSink | null): boolean {
    let isDouble = false;
    this.#tables.sink = { row: (document) => (isDouble = isPricedInDoubles(document)) };
    const isThere = this.#rows.get(this.#tables.found) !== undefined;
    this.#tables.sink = sink;
    if (!isThere) throw new Error('an entry of an index leads to no item');
    return isDouble === (only === 'doubles');
  }

  #steps({ table, start, end, reverse }: Range, offset: number, values: boolean): Iterator<unknown> {
    const options = { start, end, reverse, exclusiveStart: true, offset, values };
    const source = table === 'items' || table === 'rows' ? this.#rows : this.#tables[table];
    return source.getRange(options)[Symbol.iterator]();
  }
}

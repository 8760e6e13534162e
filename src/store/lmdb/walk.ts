import type { Filler } from './filler.ts';
import type { Key } from '../keys.ts';
import type { Range } from './range.ts';
import type { Database, Tables } from './tables.ts';

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
    const byIndex = range.table !== 'items';
    this.#tables.sink = filler;
    this.#tables.prefix = byIndex ? range.prefix : null;
    const steps = this.#steps(range, skip, !byIndex);
    try {
      for (;;) {
        const full = filler.full;
        if (steps.next().done === true) return false;
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
    const steps = this.#steps(range, skip - 1, false);
    try {
      return steps.next().done === true ? null : this.#tables.found.copied();
    } finally {
      steps.return?.();
    }
  }

  #steps({ table, start, end, reverse }: Range, offset: number, values: boolean): Iterator<unknown> {
    const options = { start, end, reverse, exclusiveStart: true, offset, values };
    const source = table === 'items' || table === 'rows' ? this.#rows : this.#tables[table];
    return source.getRange(options)[Symbol.iterator]();
  }
}

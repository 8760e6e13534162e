import type { Filler } from '../filler.ts';
import type { Key } from '../../keys.ts';
import type { Range } from '../range.ts';
import { KeyScratch, type Tables } from '../tables.ts';
import { endOfKey } from '../../value-keys.ts';
import type { Walker } from '../walk.ts';
import { lowerBound, upperBound } from './longest-key.ts';

/** The keys of a resource's rows and entries begin alike. See rowsPrefix. */
const PREFIX_BYTES = 4;

/** Walks the rows of a resource, in the table of all rows or of all entries. As RangeWalker does for items. */
export class ResourceWalker implements Walker {
  readonly #tables: Tables;
  readonly #rowKey = new KeyScratch();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  copyRows(range: Range, skip: number, filler: Filler): boolean {
    const { rows, found } = this.#tables;
    const byIndex = range.table === 'entries';
    const prefix = range.start.subarray(0, PREFIX_BYTES);
    this.#tables.sink = filler;
    this.#tables.prefix = byIndex ? 0 : null;
    const steps = this.#steps(range, skip, !byIndex);
    try {
      for (;;) {
        const full = filler.full;
        if (steps.next().done === true) return false;
        if (full) return true;
        if (!byIndex) continue;
        this.#setRowKey(found, range, prefix);
        if (rows.get(this.#rowKey) === undefined) throw new Error('an entry of an index leads to no row');
      }
    } finally {
      steps.return?.();
    }
  }

  keyBehind(range: Range, skip: number): Key | null {
    this.#tables.prefix = 0;
    const steps = this.#steps(range, skip - 1, false);
    try {
      return steps.next().done === true ? null : this.#tables.found.copied();
    } finally {
      steps.return?.();
    }
  }

  /** The key of the row that an entry leads to: the id is behind the prefix and the values. */
  #setRowKey(entry: KeyScratch, { prefix, values = 0 }: Range, rowsPrefix: Key): void {
    let idAt = prefix;
    if (values > 0) {
      const bytes = entry.bytes.subarray(0, entry.length);
      for (let left = values; left > 0; left--) idAt = endOfKey(bytes, idAt);
    }
    const key = this.#rowKey;
    key.bytes.set(rowsPrefix);
    key.bytes.set(entry.bytes.subarray(idAt, entry.length), rowsPrefix.length);
    key.length = rowsPrefix.length + entry.length - idAt;
  }

  #steps({ table, start, end, reverse }: Range, offset: number, values: boolean): Iterator<unknown> {
    const [low, high] = reverse ? [upperBound, lowerBound] : [lowerBound, upperBound];
    const options = { start: low(start), end: high(end), reverse, exclusiveStart: true, offset, values };
    return this.#tables[table].getRange(options)[Symbol.iterator]();
  }
}

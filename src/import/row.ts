import { clipped, printable, quoted } from '../terminal/text.ts';

/**
 * A row of a source: its first line, or the number of its element in a JSON array, both from 1, and its item as a BSON
 * document or the reason why there is none. `of`: the column or field that has the fault.
 */
export type SourceRow<T = Uint8Array> =
  | { readonly at: number; readonly item: T }
  | { readonly at: number; readonly problem: string; readonly of?: string | undefined };

/** Rows as they come, some at a time: a promise for each would cost as much as to read it. */
export type SourceRows<T = Uint8Array> = AsyncIterable<readonly SourceRow<T>[]>;

/** The rows of a source, and the unit that their `at` counts. */
export interface Rows {
  readonly unit: 'line' | 'row';
  readonly rows: SourceRows;
  /** The number of rows so far that have no key of their own, and got a new ObjectId. */
  readonly withoutKey?: () => number;
  /** Lines for the beginning of an import: what makes rows bad. */
  readonly warnings?: readonly string[];
  /** Lines for the end of an import, such as what each column became. */
  readonly describe?: () => readonly string[];
}

/** This row cannot become an item. The message gives the reason without the position. */
export class BadRow extends Error {
  override readonly name: string = 'BadRow';
  /** The field that has the fault, such as `column Price EUR`. */
  of?: string;

  /** Names the field that has the fault, unless it or a deeper one was named already. */
  in(what: 'field' | 'column', name: string): this {
    if (this.of !== undefined) return this;
    this.of = `${what} ${printable(clipped(name))}`;
    this.message = `${what} ${quoted(name)}: ${this.message}`;
    return this;
  }
}

/** The text of a row is not JSON. The message begins with where the fault is. */
export class NotJson extends BadRow {
  override readonly name = 'NotJson';
}

/** The rest of the source cannot be read. The run ends here, and keeps the rows before this point. */
export class BrokenSource extends Error {
  override readonly name = 'BrokenSource';
}

/** A row is longer than LONGEST_ROW, and where it ends is not known. */
export class LongRow extends BrokenSource {
  constructor(at: number) {
    super(`row ${at} is longer than 16 MB`);
  }
}

/** Bytes. A quote that is never closed, or a file without line ends, must not fill the memory. */
export const LONGEST_ROW = 16 * 1024 * 1024;

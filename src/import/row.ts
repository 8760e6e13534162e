/**
 * One row of a source: where it stands (its first line, or for a JSON array the number of the element, both from 1)
 * and its item as a BSON document, or the reason why there is none.
 */
export type SourceRow =
  { readonly at: number; readonly item: Uint8Array } | { readonly at: number; readonly problem: string };

/** The rows of a source, and what their `at` counts. */
export interface Rows {
  readonly unit: 'line' | 'row';
  readonly rows: AsyncIterable<SourceRow>;
}

/** This row cannot become an item; the rows after it can. The message says why, without the place. */
export class BadRow extends Error {
  override readonly name = 'BadRow';
}

/** What follows in the source cannot be read: the run ends here, with the rows before it kept. */
export class BrokenSource extends Error {
  override readonly name = 'BrokenSource';
}

/** The longest row that is read: a quote that is never closed, or a file without line ends, must not fill the memory. */
export const LONGEST_ROW = 16 * 1024 * 1024;

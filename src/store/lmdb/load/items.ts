import { FORMAT_KEY, FORMATS } from '../format.ts';
import { keyRow } from '../row.ts';
import type { IndexName, Tables } from '../tables.ts';
import { COUNT_KEY, countBytes, itemCount } from '../write.ts';
import type { LoadTarget } from './load.ts';

const INDEXES: readonly IndexName[] = ['byPrice', 'byCategory', 'byCategoryPrice'];

/** The items, as the set that a load fills. */
export function itemsTarget(tables: Tables): LoadTarget {
  let hasDecimals = false;
  const setFormat = (format: string): void => {
    tables.meta.putSync(FORMAT_KEY, Buffer.from(format));
  };
  return {
    rows: tables.items,
    indexes: INDEXES.map((index) => tables[index]),
    isEmpty: () => itemCount(tables.meta) === 0,
    keyed: (document) => {
      const row = keyRow(document);
      if (typeof row === 'string') return row;
      hasDecimals ||= row.hasDecimalKey;
      return { id: row.id, document, entries: INDEXES.map((index) => row.partsOf(index)) };
    },
    // A program that does not know of loads must not take the rows so far for all.
    begin: () => setFormat(FORMATS.loading),
    complete: (rows) => {
      setFormat(hasDecimals ? FORMATS.decimals : FORMATS.first);
      tables.meta.putSync(COUNT_KEY, countBytes(rows));
    },
    clear: () => {
      for (const table of [tables.items, ...INDEXES.map((index) => tables[index])]) table.clearSync();
      setFormat(FORMATS.first);
    },
  };
}

import { MOST_COLUMNS, SAMPLED_ROWS } from '../../rows/csv-cell.ts';
import type { Selection } from '../../rows/selection.ts';
import { rowsOf, type Batch } from '../../store/batch.ts';
import { onDemand } from '../../store/bson.ts';
import type { BegunSet } from './formats/format.ts';

const BATCH_BYTES = 768 * 1024;

/**
 * Resolves to the columns of a stream without `fields`: those that every row has, then the fields of its first 1,000
 * rows (or `most`, if that is less) in order of first appearance. If one of these rows has its own field `id`, then `_id`
 * (the key) comes before `id`. Fields that are not shown have no columns.
 */
export async function columnsOfRows({
  rows,
  plan,
  first,
  columns: always,
  most,
  shown: selection,
  signal,
}: Omit<BegunSet, 'fields' | 'kinds'>): Promise<readonly string[]> {
  const columns: Columns = { names: new Set(always), hasOwnId: false, selection };
  const wanted = Math.min(SAMPLED_ROWS, most);
  let seen = first.rows;
  collect(first, columns);
  for (let { last, more } = first; more && last && seen < wanted;) {
    const batch = await rows.read(plan, { after: last }, { rows: wanted - seen, bytes: BATCH_BYTES }, signal);
    try {
      collect(batch, columns);
    } finally {
      batch.release();
    }
    seen += batch.rows;
    ({ last, more } = batch);
  }
  return columns.hasOwnId ? ['_id', ...columns.names] : [...columns.names];
}

interface Columns {
  readonly names: Set<string>;
  hasOwnId: boolean;
  readonly selection: Selection;
}

function collect(batch: Batch, columns: Columns): void {
  for (const row of rowsOf(batch)) {
    const bytes = Buffer.from(row.buffer, row.byteOffset, row.length);
    for (const [, nameAt, length] of onDemand.parseToElements(row)) {
      const name = bytes.toString('utf8', nameAt, nameAt + length);
      if (name !== '_id' && !columns.selection.showsField(name)) continue;
      if (name === 'id') columns.hasOwnId = true;
      else if (name !== '_id' && columns.names.size < MOST_COLUMNS) columns.names.add(name);
    }
  }
}

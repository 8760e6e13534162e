import { rowsOf, type Batch } from '../store/batch.ts';
import { onDemand } from '../store/bson.ts';
import type { ItemStore, Plan } from '../store/store.ts';

/** So many rows are looked at for the columns of a table, and so many columns it has at most. */
export const SAMPLED_ROWS = 1_000;
const MOST_COLUMNS = 1_000;
const BATCH_BYTES = 768 * 1024;

/** What each item has stands first. */
const ALWAYS = ['id', 'category', 'price'];

/**
 * The columns of fields asked for, in their order. The key is `_id` where that is among them, and `id` is then the rows' own
 * field; else the key is `id`, which stands first unless it was asked for. The names alone decide, so that pieces join.
 */
export function columnsOfFields(fields: readonly string[]): readonly string[] {
  const names = [...new Set(fields)];
  return names.includes('_id') || names.includes('id') ? names : ['id', ...names];
}

/**
 * The columns of a stream whose fields nobody named: id, category, price, then what its first 1,000 rows (or `most`) have, in
 * order of first appearance; where one of these rows has a field `id` of its own, `_id` (the key) stands before `id`. `first` is
 * the stream's first batch, which stays the caller's.
 */
export async function columnsOfRows(
  items: Pick<ItemStore, 'read'>,
  plan: Plan,
  first: Batch,
  most: number,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const columns: Columns = { names: new Set(ALWAYS), hasOwnId: false };
  const wanted = Math.min(SAMPLED_ROWS, most);
  let seen = first.rows;
  collect(first, columns);
  for (let { last, more } = first; more && last && seen < wanted;) {
    const batch = await items.read(
      plan,
      { after: last },
      { rows: wanted - seen, bytes: BATCH_BYTES },
      signal,
    );
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
}

function collect(batch: Batch, columns: Columns): void {
  for (const row of rowsOf(batch)) {
    const bytes = Buffer.from(row.buffer, row.byteOffset, row.length);
    for (const [, nameAt, length] of onDemand.parseToElements(row)) {
      const name = bytes.toString('utf8', nameAt, nameAt + length);
      if (name === 'id') columns.hasOwnId = true;
      else if (name !== '_id' && columns.names.size < MOST_COLUMNS) columns.names.add(name);
    }
  }
}

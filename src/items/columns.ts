import { rowsOf, type Batch } from '../store/batch.ts';
import { onDemand } from '../store/bson.ts';
import type { ItemStore, Plan } from '../store/store.ts';

/** How many rows are sampled for the columns of a table, and how many columns a table has at most. */
export const SAMPLED_ROWS = 1_000;
const MOST_COLUMNS = 1_000;
const BATCH_BYTES = 768 * 1024;

/** Every item has these, so they come first. */
const ALWAYS = ['id', 'category', 'price'];

/**
 * The columns of the fields that the client asked for, in their order. If `_id` is among them, it is the key, and `id`
 * is the rows' own field. Otherwise the key is `id`, which comes first unless it was asked for. Only the names decide,
 * so the pieces of a set can be joined.
 */
export function columnsOfFields(fields: readonly string[]): readonly string[] {
  const names = [...new Set(fields)];
  return names.includes('_id') || names.includes('id') ? names : ['id', ...names];
}

/**
 * Resolves to the columns of a stream without `fields`: id, category, price, then the fields of its first 1,000 rows
 * (or `most`, if that is less) in order of first appearance. If one of these rows has its own field `id`, then `_id`
 * (the key) comes before `id`. `first` is the stream's first batch. It remains the caller's.
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

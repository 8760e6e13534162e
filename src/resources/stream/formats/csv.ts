import { conflict, documented, oneOf } from '../../../input/parameter.ts';
import { columnsOfFields, csvHeader, MOST_COLUMNS, SAMPLED_ROWS } from '../../../rows/csv-cell.ts';
import type { Selection } from '../../../rows/selection.ts';
import { rowsOf, type Batch } from '../../../store/batch.ts';
import { onDemand } from '../../../store/bson.ts';
import { Type } from '../../../schema.ts';
import { COMPRESSIONS } from '../../../pipeline/pieces.ts';
import type { BegunSet, Format } from './format.ts';

const TYPE = 'text/csv';

const safe = documented(
  oneOf('safe', ['true', 'false']),
  'CSV only: put an apostrophe before text that a spreadsheet would run as a formula.',
  { fallback: 'false' },
);
const header = documented(
  oneOf('header', ['present', 'absent']),
  'CSV only: whether the first line has the column names.',
  { fallback: 'present' },
);

/** A table of text (RFC 4180). Without `fields`, its columns are those of the first rows. */
export const csv: Format = {
  name: 'csv',
  types: [TYPE],
  contentType: `${TYPE}; charset=utf-8`,
  extension: 'csv',
  compressions: COMPRESSIONS,
  options: [
    {
      parameter: safe,
      member: Type.Boolean({
        description:
          'true or false: whether CSV gets an apostrophe before text that a spreadsheet would run as a formula',
      }),
    },
    { parameter: header },
  ],
  content: ({ noun, examples }) => ({
    [TYPE]: {
      schema: { type: 'string', description: `CSV (RFC 4180) in UTF-8, one ${noun.one} per record` },
      ...(examples.stream?.csv && { example: examples.stream.csv }),
    },
  }),
  read: (query, { fields, isPiece }) => {
    const isSafe = safe.read(query) === 'true';
    const named = header.read(query) ?? 'present';
    // The columns are those of the first rows. The first rows of a part may have others, and without a header no one
    // would notice.
    if (named === 'absent' && isPiece && !fields)
      throw conflict(
        'header',
        'header may be absent with cursor, after or part only if fields names the columns.',
      );
    return async (set, transcoder) => {
      const columns = fields ? columnsOfFields(fields) : await columnsOfRows(set);
      const selection = set.shown.pick(fields);
      return {
        contentType: `${TYPE}; charset=utf-8; header=${named}`, // RFC 4180, 3
        head: named === 'present' ? csvHeader(columns, isSafe) : '',
        write: () => ({ encoder: transcoder.table(columns, isSafe, selection) }),
      };
    };
  },
};

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

import { conflict, documented, oneOf } from '../../../input/parameter.ts';
import { columnsOfFields, csvHeader } from '../../../rows/csv-cell.ts';
import { Type } from '../../../base/schema.ts';
import { COMPRESSIONS } from '../../../pipeline/pieces.ts';
import { textColumns } from '../sampled-columns.ts';
import type { Format } from './format.ts';

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
    // The columns are those of the first rows. A part may have others, and without a header no one would notice.
    if (named === 'absent' && isPiece && !fields)
      throw conflict(
        'header',
        'header may be absent with cursor, after or part only if fields names the columns.',
      );
    return async (set, transcoder) => {
      const columns = fields ? columnsOfFields(fields) : await textColumns(set);
      const selection = set.resource.shown.pick(fields);
      return {
        contentType: `${TYPE}; charset=utf-8; header=${named}`, // RFC 4180, 3
        head: named === 'present' ? csvHeader(columns, isSafe) : '',
        write: () => ({ encoder: transcoder.table(columns, isSafe, selection) }),
      };
    };
  },
};

import { conflict, documented, oneOf } from '../../../input/parameter.ts';
import { COMMAS, columnsOfFields, csvHeader, POINTS } from '../../../rows/csv-cell.ts';
import { Type, wordOf } from '../../../base/schema.ts';
import { COMPRESSIONS } from '../../../pipeline/pieces.ts';
import { textColumns } from '../sampled-columns.ts';
import type { Format } from './format.ts';

const TYPE = 'text/csv';

/** The languages whose numbers have a decimal comma, and whose Excel separates cells by semicolons; and English. */
const LOCALES = ['en', 'de', 'es', 'fr', 'it', 'nl', 'pl', 'pt'] as const;
/** Excel takes a file without it for one of its own code page. */
const BYTE_ORDER_MARK = '\ufeff';

const safe = documented(
  oneOf('safe', ['true', 'false']),
  'CSV only: put an apostrophe before text that a spreadsheet would run as a formula. true with excel=true.',
);
const excel = documented(
  oneOf('excel', ['true', 'false']),
  'CSV only: a file that Excel opens by a double click: with a byte order mark, with the separators of locale, and safe.',
  { fallback: 'false' },
);
const locale = documented(
  oneOf('locale', LOCALES),
  'CSV only, with excel=true: the language of Excel. All but en have semicolons between cells, and commas before decimals.',
  { fallback: 'en' },
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
    {
      parameter: excel,
      member: Type.Boolean({ description: 'true or false: whether Excel opens the CSV by a double click' }),
    },
    {
      parameter: locale,
      member: wordOf(LOCALES),
    },
  ],
  content: ({ noun, examples }) => ({
    [TYPE]: {
      schema: { type: 'string', description: `CSV (RFC 4180) in UTF-8, one ${noun.one} per record` },
      ...(examples.stream?.csv && { example: examples.stream.csv }),
    },
  }),
  read: (query, { fields, isPiece }) => {
    const isExcel = excel.read(query) === 'true';
    const isSafe = (safe.read(query) ?? String(isExcel)) === 'true';
    const notation = (locale.read(query) ?? 'en') === 'en' ? POINTS : COMMAS;
    if (notation !== POINTS && !isExcel) throw conflict('locale', 'This locale requires excel=true.');
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
        head:
          named === 'present' ? (isExcel ? BYTE_ORDER_MARK : '') + csvHeader(columns, isSafe, notation) : '',
        write: () => ({ encoder: transcoder.table(columns, isSafe, selection, notation) }),
      };
    };
  },
};

import { conflict, documented, invalid, oneOf, textAs } from '../../../input/parameter.ts';
import { columnsOfText, columnsText, KINDS_TEXT, type Column } from '../../../rows/arrow/columns.ts';
import type { ArrowTable } from '../../../rows/arrow/writer.ts';
import { columnsOfFields } from '../../../rows/csv-cell.ts';
import { ArrowEncoder } from '../../../pipeline/arrow-encoder.ts';
import { arrowColumns, declaredColumns } from '../sampled-columns.ts';
import type { Format, Proof } from './format.ts';

const TYPE = 'application/vnd.apache.arrow.stream';

const MOST_COLUMNS_TEXT = 7_000;

const columnsParameter = documented(
  textAs('columns', MOST_COLUMNS_TEXT, readColumns),
  `Arrow only: the columns and their kinds, such as \`id:text,price:integer\`. A stream has its own in the metadata \`sluice.columns\` of its schema. The kinds are ${KINDS_TEXT}. Required with cursor, after and part, so that pieces can be joined, unless the kinds of all \`fields\` are declared and none is a decimal.`,
);
const schemaParameter = documented(
  oneOf('schema', ['open', 'strict']),
  '`strict` (Arrow only) cuts the stream at a value that fits no column. With `open`, such values stand in the column `_rest`.',
  { fallback: 'open' },
);
const jsonParameter = documented(
  oneOf('json', ['extension', 'text']),
  'Streams of Arrow only: how columns of JSON are marked. `text`: as plain text, for readers that do not know the extension type `arrow.json`, such as polars before 1.36.',
  { fallback: 'extension' },
);

/** The options of a table, also in Parquet. */
export const TABLE_OPTIONS = [
  { parameter: columnsParameter, member: memberOf(columnsParameter) },
  { parameter: schemaParameter, neutral: 'open', member: memberOf(schemaParameter) },
];

/** A table in the Arrow IPC streaming format. Each of its record batches has a checkpoint. */
export const arrow = {
  name: 'arrow',
  types: [TYPE],
  contentType: TYPE,
  extension: 'arrows',
  compressions: ['none', 'gzip'], // Brotli is for text
  options: [
    ...TABLE_OPTIONS,
    { parameter: jsonParameter, neutral: 'extension', member: memberOf(jsonParameter) },
  ],
  content: () => ({
    [TYPE]: {
      schema: {
        type: 'string',
        description:
          'a table in the Arrow IPC streaming format. Each record batch has a Tally in its metadata `sluice.checkpoint`, the last one an EndTally in `sluice.end`',
      },
    },
  }),
  ofParts: async (query, set) =>
    query.has('columns') ? [] : [['columns', columnsText(await arrowColumns(set))]],
  read: (query, { fields, isPiece, resource }) => {
    const given = columnsParameter.read(query);
    const isStrict = schemaParameter.read(query) === 'strict';
    const isJsonText = jsonParameter.read(query) === 'text';
    if (isPiece && !given && !declaredColumns(fields, resource))
      throw conflict(
        'columns',
        'columns is required with cursor, after or part: pieces are joined by their columns.',
      );
    if (given && fields && !haveNames(given, fields))
      throw conflict('columns', 'columns and fields name different columns.');
    return async (set, transcoder) => {
      const columns = given ?? (await arrowColumns(set));
      const table: ArrowTable = { columns, keepsRest: !fields, hasRest: !isStrict, isJsonText };
      const selection = set.resource.shown.pick(fields);
      return {
        contentType: TYPE,
        head: ArrowEncoder.head(table),
        table, // of which Parquet is made
        write: (proof: Proof) => {
          const proving = new ArrowEncoder(transcoder.arrow(table, selection), table, proof);
          return { encoder: proving, tail: () => proving.end(), proving };
        },
      };
    };
  },
} as const satisfies Format;

/** Whether these are the columns of these fields, in their order. */
function haveNames(columns: readonly Column[], fields: readonly string[]): boolean {
  return columnsOfFields(fields).join('\0') === columns.map(({ name }) => name).join('\0');
}

/** AppError `invalid-parameter` for columns that are none. */
function readColumns(text: string): readonly Column[] {
  const columns = columnsOfText(text);
  if (columns) return columns;
  throw invalid(
    'columns',
    `columns is a list of names and kinds, such as id:text,price:integer. The kinds are ${KINDS_TEXT}.`,
  );
}

function memberOf({ schema, expected }: { readonly schema: object; readonly expected: string }) {
  return { ...schema, description: expected };
}

import { AppError } from '../errors.ts';
import { documented, oneOf, text, type Parameter } from '../input/parameter.ts';
import type { Query } from '../input/query.ts';
import { columnsOfText, KINDS, type Column, type DeclaredKinds } from '../rows/arrow/columns.ts';
import { columnsOfFields } from '../rows/csv-cell.ts';
import type { ArrowTable } from '../rows/arrow/writer.ts';
import { ARROW_TYPE } from '../rows/formats.ts';
import type { Transcoder } from '../rows/rows.ts';
import type { Selection } from '../rows/selection.ts';
import { ArrowEncoder } from '../stream/arrow-encoder.ts';
import { declaredColumns } from './arrow-columns.ts';
import type { ArrowForm } from './proving.ts';

export const MOST_COLUMNS_TEXT = 7_000;
export const SCHEMAS = ['open', 'strict'] as const;

export const schemaParameter = documented(
  oneOf('schema', SCHEMAS),
  '`strict` (Arrow only) cuts the stream at a value that fits no column. With `open`, such values stand in the column `_rest`.',
  { fallback: 'open' },
);

export const columnsParameter: Parameter<string> = documented(
  text('columns', MOST_COLUMNS_TEXT),
  `Arrow only: the columns and their kinds, such as \`id:text,price:integer\`. A stream tells its own in the metadata \`sluice.columns\` of its schema. The kinds are ${KINDS.join(', ')}. Required with cursor, after and part, so that pieces can be joined, unless the kinds of all \`fields\` are declared.`,
);

/** What the query of a stream asks for in Arrow. */
export interface ArrowQuery {
  readonly columns: readonly Column[] | undefined;
  readonly isStrict: boolean;
  /** Whether the kinds of all columns are declared, so that each piece of the set has the same. */
  readonly isDeclared: boolean;
}

/** AppError `invalid-parameter` for columns that are none. */
export function readArrowQuery(
  query: Query,
  fields: readonly string[] | undefined,
  kinds: DeclaredKinds | undefined,
): ArrowQuery {
  const given = columnsParameter.read(query);
  const columns = given === undefined ? undefined : columnsOfText(given);
  if (given !== undefined && !columns)
    throw new AppError(
      'invalid-parameter',
      `columns is a list of names and kinds, such as id:text,price:integer. The kinds are ${KINDS.join(', ')}.`,
      { parameter: 'columns' },
    );
  const isDeclared = declaredColumns(fields, kinds) !== undefined;
  return { columns, isStrict: schemaParameter.read(query) === 'strict', isDeclared };
}

/**
 * The table of a stream. `sample` finds columns where the query names none. AppError `conflicting-parameters` when the
 * names in `columns` are not those of `fields`.
 */
export async function arrowTable(
  { columns, isStrict }: Pick<ArrowQuery, 'columns' | 'isStrict'>,
  fields: readonly string[] | undefined,
  sample: () => Promise<readonly Column[]>,
): Promise<ArrowTable> {
  if (columns) assertNames(columns, fields);
  return { columns: columns ?? (await sample()), keepsRest: !fields, hasRest: !isStrict };
}

/** Whether these are the columns of these fields, in their order. */
export function haveNames(columns: readonly Column[], fields: readonly string[]): boolean {
  return columnsOfFields(fields).join('\0') === columns.map(({ name }) => name).join('\0');
}

/** AppError `conflicting-parameters` when the names in `columns` are not those of `fields`. */
export function assertNames(columns: readonly Column[], fields: readonly string[] | undefined): void {
  if (!fields || haveNames(columns, fields)) return;
  throw new AppError('conflicting-parameters', 'columns and fields name different columns.', {
    parameter: 'columns',
  });
}

/** The form of a stream in Arrow. */
export function arrowForm(table: ArrowTable, transcoder: Transcoder, selection: Selection): ArrowForm {
  return {
    contentType: ARROW_TYPE,
    head: ArrowEncoder.head(table),
    tail: '',
    table,
    writer: () => transcoder.arrow(table, selection),
  };
}

import { AppError } from '../errors.ts';
import type { Query } from '../input/query.ts';
import { csvHeader } from '../rows/csv-cell.ts';
import type { RowEncoder, Transcoder } from '../rows/rows.ts';
import { columnsOfFields } from '../rows/csv-cell.ts';
import { EVERYTHING, type Selection } from '../rows/selection.ts';
import { FORMS, formatOfType, type StreamType } from '../rows/formats.ts';
import { formatParameter, type StreamQuery } from './query.ts';

/** The parameters that decide how rows are written. */
type FormQuery = Pick<StreamQuery, 'fields' | 'safe' | 'header'>;

/** How a stream's rows are written: the text before and after them, and the encoder. */
export interface StreamForm {
  readonly contentType: string;
  readonly head: string;
  readonly tail: string;
  readonly encoder: () => RowEncoder;
}

/** The media type that `format` asks for. It takes precedence over Accept. */
export function typeAsked(query: Query): StreamType | undefined {
  const format = formatParameter.read(query);
  return format && FORMS[format].types[0];
}

/** The form of a stream of this type. `columns` is called only for a table without `fields`. `shown`: what may leave the server. */
export async function streamForm(
  type: StreamType,
  query: FormQuery,
  transcoder: Transcoder,
  columns: () => Promise<readonly string[]>,
  shown: Selection = EVERYTHING,
): Promise<StreamForm> {
  const { layout } = FORMS[formatOfType(type)];
  if (layout === 'batches') throw new TypeError('Arrow has a form of its own');
  const selection = shown.pick(query.fields);
  if (layout === 'table') return tableForm(query, selection, transcoder, await columnsOf(query, columns));
  const encoder = () => transcoder.encoder(layout, selection);
  const [head, tail] = layout === 'array' ? ['[', ']\n'] : ['', ''];
  return { contentType: type, head, tail, encoder };
}

async function columnsOf(
  { fields }: FormQuery,
  columns: () => Promise<readonly string[]>,
): Promise<readonly string[]> {
  return fields ? columnsOfFields(fields) : columns();
}

function tableForm(
  query: FormQuery,
  selection: Selection,
  transcoder: Transcoder,
  columns: readonly string[],
): StreamForm {
  const { safe = false, header = 'present' } = query;
  return {
    contentType: `${FORMS.csv.contentType}; header=${header}`, // RFC 4180, 3
    head: header === 'present' ? csvHeader(columns, safe) : '',
    tail: '',
    encoder: () => transcoder.table(columns, safe, selection),
  };
}

/** No parameter is silently ignored: AppError `conflicting-parameters` for a parameter that does not fit the form. */
export function assertFits(query: StreamQuery, type: StreamType): void {
  const { layout } = FORMS[formatOfType(type)];
  const { columns, isStrict, isDeclared } = query.arrow;
  if (layout === 'batches' && query.isPiece && !columns && !isDeclared)
    throw conflict('columns', 'is required with cursor, after or part: pieces are joined by their columns.');
  if (layout !== 'batches' && (columns !== undefined || isStrict))
    throw conflict(columns ? 'columns' : 'schema', `requires format=arrow; the format is ${type}.`);
  if (query.checkpoints && layout !== 'lines')
    throw conflict('checkpoints', `requires format=ndjson; the format is ${type}.`);
  if (query.safe !== undefined && layout !== 'table')
    throw conflict('safe', `requires format=csv; the format is ${type}.`);
  if (query.header !== undefined && layout !== 'table')
    throw conflict('header', `requires format=csv; the format is ${type}.`);
  // The columns are those of the first rows. The first rows of a part may have others, and without a header nobody
  // would notice.
  if (query.header === 'absent' && query.isPiece && !query.fields)
    throw conflict('header', 'may be absent with cursor, after or part only if fields names the columns.');
}

function conflict(parameter: string, why: string): AppError {
  return new AppError('conflicting-parameters', `${parameter} ${why}`, { parameter });
}

import { columnsOfText, columnsText, KINDS } from '../rows/arrow/columns.ts';
import { isTable, TABLE_FORMATS, type ExportFormat } from '../rows/formats.ts';
import type { BodyFault } from '../errors.ts';
import { quote } from '../input/query.ts';
import { MAX_KEY_BYTES } from '../items/query.ts';
import { pathFault } from '../rows/selection.ts';
import { assertNames, haveNames } from '../streams/arrow-form.ts';
import type { StreamQuery } from '../streams/query.ts';
import { COMPRESSIONS, type Compression, type ExportBody } from './export.ts';

type Form = Pick<ExportBody, 'fields' | 'safe' | 'format' | 'compression' | 'columns' | 'schema'>;

/** The faults of an order that its schema cannot express: those of the form that the rows are to have. */
export function formFaults({ fields = [], safe, format = 'ndjson', ...form }: Form): readonly BodyFault[] {
  const faults: BodyFault[] = [];
  for (const [n, path] of fields.entries()) {
    const place = `/fields/${n}`;
    if (Buffer.byteLength(path) > MAX_KEY_BYTES) faults.push(tooLong(place));
    const fault = pathFault(path);
    if (fault)
      faults.push({
        pointer: place,
        detail: `expected the name or path of a field; ${quote(path)} ${fault}`,
      });
  }
  if (safe !== undefined && format !== 'csv')
    faults.push({ pointer: '/safe', detail: `expected only with format csv; the format is ${format}` });
  return [...faults, ...tableFaults({ fields, format, ...form })];
}

/** The compressions of files of a format. Parquet is compressed inside. Pieces of Brotli are made of text only. */
export function compressionsOf(format: ExportFormat): readonly Compression[] {
  if (format === 'parquet') return ['none'];
  return format === 'arrow' ? ['none', 'gzip'] : COMPRESSIONS;
}

/** The faults of what only tables of Arrow and Parquet have, and of their compression. */
function tableFaults({
  fields = [],
  format = 'ndjson',
  compression = 'none',
  columns,
  schema,
}: Form): readonly BodyFault[] {
  const faults: BodyFault[] = [];
  const fitting = compressionsOf(format);
  if (!fitting.includes(compression)) {
    const inside = format === 'parquet' ? ', which is compressed inside' : '';
    const detail = `expected ${fitting.join(' or ')} with format ${format}${inside}; got ${compression}`;
    faults.push({ pointer: '/compression', detail });
  }
  for (const [name, given] of Object.entries({ columns, schema }))
    if (given !== undefined && !isTable(format))
      faults.push({
        pointer: `/${name}`,
        detail: `expected only with format ${TABLE_FORMATS.join(' or ')}; the format is ${format}`,
      });
  if (columns === undefined) return faults;
  const read = columnsOfText(columns);
  if (!read)
    faults.push({
      pointer: '/columns',
      detail: `expected names and kinds, such as id:text,price:integer; the kinds are ${KINDS.join(', ')}`,
    });
  else if (fields.length > 0 && !haveNames(read, fields))
    faults.push({ pointer: '/columns', detail: 'expected the columns of fields, in their order' });
  return faults;
}

/** The fault of a text that is too long at this place of a body. */
export function tooLong(pointer: string): BodyFault {
  return { pointer, detail: `expected at most ${MAX_KEY_BYTES} bytes of UTF-8` };
}

/** What the query of a stream says of its table of Arrow. AppError `conflicting-parameters` as for that stream. */
export function tableOf({
  arrow,
  fields,
}: Pick<StreamQuery, 'arrow' | 'fields'>): Pick<Form, 'columns' | 'schema'> {
  const { columns, isStrict } = arrow;
  if (columns) assertNames(columns, fields);
  return { ...(columns && { columns: columnsText(columns) }), ...(isStrict && { schema: 'strict' }) };
}

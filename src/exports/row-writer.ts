import { columnsOfText, columnsText } from '../rows/arrow/columns.ts';
import { FORMS, isTable, type Format, type TableFormat } from '../rows/formats.ts';
import type { Transcoder } from '../rows/rows.ts';
import type { Batch } from '../store/batch.ts';
import type { Plan } from '../store/store.ts';
import { ArrowEncoder } from '../stream/arrow-encoder.ts';
import { planBehind } from '../stream/chain.ts';
import { arrowColumns } from '../streams/arrow-columns.ts';
import { arrowForm, arrowTable } from '../streams/arrow-form.ts';
import { columnsOfRows } from '../streams/columns.ts';
import { streamForm } from '../streams/form.ts';
import type { Job, Kept } from './job.ts';
import { TextSegments, type SegmentWriter } from './segment-writer.ts';
import type { ExportSource } from './source.ts';
import { arrowFrame, parquetFrame, TableSegments } from './table-segments.ts';

/** What is known when the rows of an export begin to be read. */
export interface RowsToWrite {
  readonly request: Job['request'];
  readonly source: ExportSource;
  readonly transcoder: Transcoder;
  readonly plan: Plan;
  readonly first: Batch;
  /** The part of the file that the rows follow. */
  readonly kept: Kept | null;
  /** See Job. */
  readonly columns: Job['columns'];
}

/** The writer of the rows of an export, and the columns of its table, which each attempt has in common. */
export interface RowWriter {
  readonly writer: SegmentWriter;
  readonly columns: Job['columns'];
}

/** Rejects with the error of the store, whose rows may be sampled for columns. */
export async function rowWriter(rows: RowsToWrite, signal: AbortSignal): Promise<RowWriter> {
  const { format } = rows.request;
  return isTable(format) ? tableWriter(rows, format, signal) : textWriter(rows, format, signal);
}

async function textWriter(
  { request, source, transcoder, plan, first, kept, columns: known }: RowsToWrite,
  format: Exclude<Format, TableFormat>,
  signal: AbortSignal,
): Promise<RowWriter> {
  const { fields, safe } = request;
  const { rows, columns: always, shown } = source;
  let columns = known;
  const columnsOf = async () =>
    (columns ??= await columnsOfRows(
      rows,
      planBehind(plan, first),
      first,
      { always, most: Infinity },
      signal,
      shown,
    ));
  const query = { fields, safe, header: undefined };
  const form = await streamForm(FORMS[format].types[0], query, transcoder, columnsOf, shown);
  const head = kept === null ? form.head : format === 'json' ? ',' : '';
  return { writer: new TextSegments(form.encoder(), { head, tail: form.tail }), columns };
}

async function tableWriter(
  { request, source, transcoder, plan, first, kept, columns: known }: RowsToWrite,
  format: TableFormat,
  signal: AbortSignal,
): Promise<RowWriter> {
  const { fields, columns: given, schema } = request;
  const { rows, columns: always, shown, kinds } = source;
  const text = known?.join(',') ?? given;
  const columns = text === undefined ? undefined : columnsOfText(text);
  const table = await arrowTable({ columns, isStrict: schema === 'strict' }, fields, () =>
    arrowColumns(rows, planBehind(plan, first), { always, fields, shown, kinds }, signal),
  );
  const form = arrowForm(table, transcoder, shown.pick(fields));
  const writer = form.writer();
  const encoder = new ArrowEncoder(writer, table, {
    plan,
    cursorOf: () => undefined, // a file is not resumed, but fetched by ranges
    start: undefined,
    ...(kept?.bodies && { before: { rows: kept.rows, ...kept.bodies } }),
  });
  const isContinued = kept !== null;
  const frame = format === 'arrow' ? arrowFrame(form.head, encoder, isContinued) : parquetFrame(form.head);
  return {
    writer: new TableSegments(writer, encoder, frame),
    columns: columnsText(table.columns).split(','), // names have no commas there
  };
}

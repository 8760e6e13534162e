import type { PlanParameters } from '../pages/query.ts';
import { ARROW_TYPE, type StreamType } from '../rows/formats.ts';
import type { Transcoder } from '../rows/rows.ts';
import { EVERYTHING } from '../rows/selection.ts';
import { orRelease, type Batch } from '../store/batch.ts';
import type { Plan, RowStore } from '../store/store.ts';
import { arrowColumns } from './arrow-columns.ts';
import { arrowForm, arrowTable } from './arrow-form.ts';
import { columnsOfRows } from './columns.ts';
import { streamForm, type StreamForm } from './form.ts';
import type { ArrowForm } from './proving.ts';
import type { StreamQuery } from './query.ts';

/** The set whose rows are written. */
export interface FormSource {
  readonly rows: RowStore;
  readonly plan: Pick<PlanParameters, 'shown' | 'kinds'>;
  /** The columns that every table begins with, the first of them `id`. */
  readonly columns: readonly string[];
}

/**
 * How the rows of a stream or a file are written. Columns that the query does not name are those of the first rows: of
 * `first`, and of those behind it in `plan`. Releases `first` and rejects when the store fails.
 */
export function rowForm(
  query: Pick<StreamQuery, 'fields' | 'safe' | 'header' | 'arrow' | 'limit'>,
  type: StreamType,
  { rows, plan: { shown = EVERYTHING, kinds }, columns: always }: FormSource,
  transcoder: Transcoder,
  { plan, first }: { readonly plan: Plan; readonly first: Batch },
  signal: AbortSignal,
): Promise<ArrowForm | StreamForm> {
  const { fields, limit: most } = query;
  return orRelease(first, async () => {
    if (type !== ARROW_TYPE) {
      const columns = () => columnsOfRows(rows, plan, first, { always, most }, signal, shown);
      return streamForm(type, query, transcoder, columns, shown);
    }
    const sample = () => arrowColumns(rows, plan, { always, fields, shown, kinds }, signal);
    return arrowForm(await arrowTable(query.arrow, fields, sample), transcoder, shown.pick(fields));
  });
}

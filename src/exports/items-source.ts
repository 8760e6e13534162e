import { changesFrom } from '../changes/from.ts';
import { FIRST_COLUMNS, ITEM_PLAN, planOf } from '../items/query.ts';
import { EVERYTHING } from '../rows/selection.ts';
import type { ChainReader, RowStore } from '../store/store.ts';
import { requestOfBody, requestOfStream } from './request.ts';
import type { ExportSource } from './source.ts';

/** Items as exports read them. */
export function itemsSource(rows: RowStore, streams: ChainReader): ExportSource {
  return {
    rows,
    streams,
    changesFrom: changesFrom(rows, ITEM_PLAN.collection),
    columns: FIRST_COLUMNS,
    shown: EVERYTHING,
    ofBody: requestOfBody,
    ofStream: requestOfStream,
    planOf: (request) => {
      if ('filters' in request) throw new TypeError('an order of another resource');
      return planOf(request);
    },
  };
}

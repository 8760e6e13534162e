import type { Scope } from '../access/rights.ts';
import { changesFrom } from '../changes/from.ts';
import { FIRST_COLUMNS, ITEM_PLAN, planOf } from '../items/query.ts';
import { scopedItems, wholeItems, type ItemSource } from '../items/scoped.ts';
import { EVERYTHING } from '../rows/selection.ts';
import type { ChainReader, RowStore } from '../store/store.ts';
import { requestOfBody, requestOfStream } from './request.ts';
import type { ExportSource } from './source.ts';

/** Items as exports read them. `openStreams`: makes the reader of a part of them. */
export function itemsSource(
  rows: RowStore,
  streams: ChainReader,
  openStreams: (rows: RowStore) => ChainReader,
): ExportSource {
  const whole = wholeItems(rows, streams);
  return sourceOf(whole, (scope) => scopedItems(whole, scope, openStreams));
}

function sourceOf(
  { rows, streams, plan, within }: ItemSource<ChainReader>,
  part: (scope: Scope) => ItemSource<ChainReader>,
  scope?: Scope,
): ExportSource {
  const scoped = scope && { scope };
  return {
    rows,
    streams,
    changesFrom: changesFrom(rows, ITEM_PLAN.collection),
    columns: FIRST_COLUMNS,
    shown: plan.shown ?? EVERYTHING,
    ofBody: (json) => ({ ...requestOfBody(json), ...scoped }),
    ofStream: (query, type) => ({ ...requestOfStream(query, type), ...scoped }),
    scoped: (own) => sourceOf(part(own), part, own),
    planOf: (request) => {
      if ('filters' in request) throw new TypeError('an order of another resource');
      return within(planOf(request));
    },
  };
}

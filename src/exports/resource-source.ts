import { changesFrom } from '../changes/from.ts';
import { RESOURCE_COLUMNS, type Resource } from '../resources/resource.ts';
import { columnKinds } from '../resources/kinds.ts';
import { readTypedPlan } from '../resources/query.ts';
import type { ExportSource } from './source.ts';
import { queryOf, requestOfBody, requestOfStream } from './resource-request.ts';

/** A resource as exports read it. */
export function resourceSource(resource: Resource): ExportSource {
  return {
    rows: resource.rows,
    streams: resource.streams,
    changesFrom: changesFrom(resource.rows, resource.name),
    columns: RESOURCE_COLUMNS,
    shown: resource.shown,
    kinds: columnKinds(resource.kinds),
    ofBody: (json, signal) => requestOfBody(json, resource, signal),
    ofStream: (query, type, signal) => requestOfStream(query, type, resource, signal),
    planOf: (request, signal) => {
      if (!('filters' in request)) throw new TypeError('an order of items');
      return readTypedPlan(queryOf(request), request.types, resource, signal);
    },
  };
}

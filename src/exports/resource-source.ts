import type { Scope } from '../access/rights.ts';
import { changesFrom } from '../changes/from.ts';
import { RESOURCE_COLUMNS, type Resource } from '../resources/resource.ts';
import { columnKinds } from '../resources/kinds.ts';
import { readTypedPlan } from '../resources/query.ts';
import { scopedResource } from '../resources/scoped.ts';
import type { ExportSource } from './source.ts';
import { queryOf, requestOfBody, requestOfStream } from './resource-request.ts';

/** A resource as exports read it. `scope`: the part of it that this is. */
export function resourceSource(resource: Resource, scope?: Scope): ExportSource {
  const scoped = scope && { scope };
  return {
    rows: resource.rows,
    streams: resource.streams,
    changesFrom: changesFrom(resource.rows, resource.name),
    columns: RESOURCE_COLUMNS,
    shown: resource.shown,
    kinds: columnKinds(resource),
    ofBody: async (json, signal) => ({ ...(await requestOfBody(json, resource, signal)), ...scoped }),
    ofStream: async (query, type, signal) => ({
      ...(await requestOfStream(query, type, resource, signal)),
      ...scoped,
    }),
    scoped: (own) => resourceSource(scopedResource(resource, own), own),
    planOf: (request, signal) => {
      if (!('filters' in request)) throw new TypeError('an order of items');
      return readTypedPlan(queryOf(request), request.types, resource, signal);
    },
  };
}

import type { Client } from '../access/admission.ts';
import { scopeOf, type Scope } from '../access/rights.ts';
import { AppError } from '../errors.ts';
import { mayKnow } from '../http/permit.ts';
import type { PlanParameters } from '../pages/query.ts';
import { isField, resourcePlan } from '../resources/query.ts';
import type { Resource } from '../resources/resource.ts';
import { scopedResource } from '../resources/scoped.ts';
import type { ChainReader } from '../store/store.ts';
import type { FormSource } from '../streams/row-form.ts';
import { ITEMS, type ExportRequest } from './job.ts';

/** A set as exports read it: the same that its stream reads, with the reader of the stream's query. */
export interface ExportSource extends FormSource {
  readonly name: string;
  readonly plan: PlanParameters;
  /** Whether its query may have a name that the plan does not list. Absent: no. */
  readonly isField?: (name: string) => boolean;
  /** The reader for a chain that has begun. It waits while the store is unavailable. */
  readonly streams: ChainReader;
  /** The part of the set that this is. */
  readonly scope?: Scope;
  /** The part that a key opens. Throws ScopeFaults. */
  readonly scoped: (scope: Scope) => ExportSource;
}

/** The sources by the names of their resources. `items` is always one of them. */
export type ExportSources = ReadonlyMap<string, ExportSource>;

/** What can be exported: items first, which an order means that names none. */
export function exportSources(resources: readonly { readonly resource: Resource }[]): ExportSources {
  const all = resources.map(({ resource }) => [resource.name, sourceIn(resource)] as const);
  return new Map([...all.filter(([name]) => name === ITEMS), ...all]);
}

function sourceIn(resource: Resource, scope?: Scope): ExportSource {
  const { name, rows, streams, form } = resource;
  return {
    ...{ name, rows, streams, columns: form.columns, plan: resourcePlan(resource) },
    ...(!form.closed && { isField }),
    ...(scope && { scope }),
    scoped: (own) => sourceIn(scopedResource(resource, own), own),
  };
}

/** The sources that a client may know of. */
export function sourcesFor(client: Pick<Client, 'key'>, sources: ExportSources): ExportSources {
  const { key } = client;
  if (key === null) return sources;
  const own = [...sources].filter(([name]) => mayKnow(client, name));
  return new Map(
    own.map(([name, source]) => {
      const scope = scopeOf(key.rights, name);
      return [name, scope ? source.scoped(scope) : source];
    }),
  );
}

/** The source of a request. Throws AppError `not-found` when this server no longer has the resource. */
export function sourceOf(
  { resource, scope }: Pick<ExportRequest, 'resource' | 'scope'>,
  sources: ExportSources,
): ExportSource {
  const source = sources.get(resource);
  if (source) return scope ? source.scoped(scope) : source;
  throw new AppError(
    'not-found',
    `The resource ${resource} is no longer declared. Declare it again, or order another export.`,
  );
}

import type { Client } from '../access/admission.ts';
import type { Scope } from '../access/rights.ts';
import { AppError } from '../errors.ts';
import { mayKnow } from '../http/permit.ts';
import type { PlanParameters } from '../resources/page/parameters.ts';
import { isField } from '../resources/query/read-plan.ts';
import type { Resource } from '../resources/query/resource.ts';
import { sourceOf } from '../resources/source.ts';
import { partOf, resourceFor } from '../resources/query/part.ts';
import type { RowReader, Collection } from '../store/store.ts';
import { ITEMS, type ExportRequest } from './job.ts';

/** A set as exports read it: the same that its stream reads, with the reader of the stream's query. */
export interface ExportSource {
  readonly name: string;
  readonly rows: Collection;
  readonly plan: PlanParameters;
  /** The columns that every table begins with, the first of them `id`. */
  readonly columns: readonly string[];
  /** Whether its query may have a name that the plan does not list. Absent: no. */
  readonly isField?: (name: string) => boolean;
  /** The reader for a chain that has begun. It waits while the store is unavailable. */
  readonly streams: RowReader;
  /** The part of the set that this is. */
  readonly scope?: Scope;
}

/** What can be exported, by the names of the resources. `items` is one of them where they are served. */
export type ExportSources = ReadonlyMap<string, Resource>;

/** What can be exported: items first, which an order means that names none. */
export function exportSources(resources: readonly { readonly resource: Resource }[]): ExportSources {
  const all = resources.map(({ resource }) => [resource.name, resource] as const);
  return new Map([...all.filter(([name]) => name === ITEMS), ...all]);
}

/** A resource, or a part of one, as exports read it. */
export function exportSource(resource: Resource): ExportSource {
  const { rows, streams, plan, columns } = sourceOf(resource);
  return {
    ...{ name: resource.name, rows, streams, plan, columns },
    ...(!resource.form.closed && { isField }),
    ...(resource.scope && { scope: resource.scope.given }),
  };
}

/** What a client can export. */
export function sourcesFor(client: Pick<Client, 'key'>, sources: ExportSources): ExportSources {
  if (client.key === null) return sources;
  const known = [...sources].filter(([name]) => mayKnow(client, name));
  return new Map(known.map(([name, resource]) => [name, resourceFor(resource, client)]));
}

/** The source of a request. Throws AppError `not-found` when this server no longer has the resource. */
export function sourceOfRequest(
  { resource: name, scope }: Pick<ExportRequest, 'resource' | 'scope'>,
  sources: ExportSources,
): ExportSource {
  const resource = sources.get(name);
  if (resource) return exportSource(scope ? partOf(resource, scope) : resource);
  throw new AppError(
    'not-found',
    `The resource ${name} is no longer declared. Declare it again, or order another export.`,
  );
}

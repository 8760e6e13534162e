import type { Client } from '../access/admission.ts';
import { AppError } from '../errors.ts';
import { mayKnow } from '../http/permit.ts';
import type { Resource } from '../resources/query/resource.ts';
import { partOf, resourceFor } from '../resources/query/part.ts';
import { ITEMS, type ExportRequest } from './job.ts';

/** What can be exported, by the names of the resources. `items` is one of them where they are served. */
export type ExportSources = ReadonlyMap<string, Resource>;

/** What can be exported: items first, which an order means that names none. */
export function exportSources(resources: readonly { readonly resource: Resource }[]): ExportSources {
  const all = resources.map(({ resource }) => [resource.name, resource] as const);
  return new Map([...all.filter(([name]) => name === ITEMS), ...all]);
}

export function sourcesFor(client: Pick<Client, 'key'>, sources: ExportSources): ExportSources {
  if (client.key === null) return sources;
  const known = [...sources].filter(([name]) => mayKnow(client, name));
  return new Map(known.map(([name, resource]) => [name, resourceFor(resource, client)]));
}

/** The resource of a request, or the part of it. Throws AppError `not-found` when this server no longer has the resource. */
export function resourceOf(
  { resource: name, scope }: Pick<ExportRequest, 'resource' | 'scope'>,
  sources: ExportSources,
): Resource {
  const resource = sources.get(name);
  if (resource) return scope ? partOf(resource, scope) : resource;
  throw new AppError(
    'not-found',
    `The resource ${name} is no longer declared. Declare it again, or order another export.`,
  );
}

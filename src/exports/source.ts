import type { Client } from '../access/admission.ts';
import { scopeOf, type Scope } from '../access/rights.ts';
import { AppError } from '../errors.ts';
import { mayKnow } from '../http/permit.ts';
import { FIRST_COLUMNS } from '../items/query.ts';
import { scopedItems, wholeItems, type ItemSource } from '../items/scoped.ts';
import type { PlanParameters } from '../pages/query.ts';
import { isField, resourcePlan } from '../resources/query.ts';
import { RESOURCE_COLUMNS, type Resource } from '../resources/resource.ts';
import { scopedResource } from '../resources/scoped.ts';
import type { ChainReader, RowStore } from '../store/store.ts';
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

/** What can be exported: items, and each of these resources. `openStreams`: makes the reader of a part of the items. */
export function exportSources(
  items: RowStore,
  streams: ChainReader,
  resources: readonly { readonly resource: Resource }[] = [],
  openStreams: (rows: RowStore) => ChainReader = (rows) => rows,
): ExportSources {
  const whole = wholeItems(items, streams);
  const part = (scope: Scope): ExportSource => ofItems(scopedItems(whole, scope, openStreams), part, scope);
  return new Map([
    [ITEMS, ofItems(whole, part)],
    ...resources.map(({ resource }) => [resource.name, ofResource(resource)] as const),
  ]);
}

function ofItems(
  { rows, streams, plan }: ItemSource<ChainReader>,
  scoped: ExportSource['scoped'],
  scope?: Scope,
): ExportSource {
  return {
    ...{ name: ITEMS, rows, streams, plan, scoped },
    ...(scope && { scope }),
    columns: FIRST_COLUMNS,
  };
}

function ofResource(resource: Resource, scope?: Scope): ExportSource {
  const { name, rows, streams } = resource;
  return {
    ...{ name, rows, streams, isField },
    ...(scope && { scope }),
    plan: resourcePlan(resource),
    columns: RESOURCE_COLUMNS,
    scoped: (own) => ofResource(scopedResource(resource, own), own),
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

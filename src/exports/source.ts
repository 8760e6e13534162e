import type { JsonBody } from '../input/body-json.ts';
import type { Query } from '../input/query.ts';
import type { DeclaredKinds } from '../rows/arrow/columns.ts';
import type { StreamType } from '../rows/formats.ts';
import type { Selection } from '../rows/selection.ts';
import type { Client } from '../access/admission.ts';
import { AppError } from '../errors.ts';
import { scopeOf, type Scope } from '../access/rights.ts';
import { mayKnow } from '../http/permit.ts';
import type { ChangesFrom } from '../streams/changes-from.ts';
import type { ChainReader, Plan, RowStore } from '../store/store.ts';
import { resourceOf, type ExportRequest } from './job.ts';

/** What exports read: the rows of one resource, and how an order for them is written. */
export interface ExportSource {
  readonly rows: RowStore;
  /** The reader for a scan that has begun. It waits while the store is unavailable. */
  readonly streams: ChainReader;
  readonly changesFrom: ChangesFrom;
  /** The columns that every table begins with, the first of them `id`. */
  readonly columns: readonly string[];
  /** What of the rows may leave the server. */
  readonly shown: Selection;
  /** The kinds of columns that the operator declared. */
  readonly kinds?: DeclaredKinds;
  /** Reads the body of an order. Throws AppError `invalid-body`, and the problems of reading a plan. */
  readonly ofBody: (json: JsonBody, signal: AbortSignal) => ExportRequest | Promise<ExportRequest>;
  /** Reads the parameters of a stream as an order. Throws the AppErrors of that stream. */
  readonly ofStream: (
    query: Query,
    type: StreamType,
    signal: AbortSignal,
  ) => ExportRequest | Promise<ExportRequest>;
  /** The part of the source that a key opens. Its requests carry the scope. Throws ScopeFaults. */
  readonly scoped: (scope: Scope) => ExportSource;
  /** The plan of a request. It is read again by each attempt, because the indexes may have changed. */
  readonly planOf: (request: ExportRequest, signal: AbortSignal) => Plan | Promise<Plan>;
}

/** The sources by the names of their resources. `items` is always one of them. */
export type ExportSources = ReadonlyMap<string, ExportSource>;

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
  request: Pick<ExportRequest, 'resource' | 'scope'>,
  sources: ExportSources,
): ExportSource {
  const name = resourceOf(request);
  const source = sources.get(name);
  if (source) return request.scope ? source.scoped(request.scope) : source;
  throw new AppError(
    'not-found',
    `The resource ${name} is no longer declared. Declare it again, or order another export.`,
  );
}

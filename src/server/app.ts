import { exportRoutes, orExport, type ExportOptions } from '../exports/export-routes.ts';
import { exportSources, sourcesFor, type ExportSources } from '../exports/order.ts';
import { getLiveness, getReadiness, type HealthOptions } from '../telemetry/health.ts';
import { getOrMake } from '../base/get-or-make.ts';
import type { Admissions, Client } from '../access/admission.ts';
import type { MountReader } from '../access/mount.ts';
import { createCors } from '../http/cors.ts';
import { getProblem } from '../http/problem-pages.ts';
import type { OpenStreams } from '../http/open-streams.ts';
import { Responder, type Observer } from '../http/respond.ts';
import type { Route } from '../http/route.ts';
import { createRouter, type Router } from '../http/router.ts';
import { severalChangesRoute } from '../resources/several-changes.ts';
import { documentedRoutes } from '../resources/documented-routes.ts';
import { listResources } from '../resources/list.ts';
import { editionRoutes, noEditionRoute } from '../editions/edition-routes.ts';
import type { Editions } from '../editions/editions.ts';
import type { Resource } from '../resources/query/resource.ts';
import type { OpenResource } from '../resources/open.ts';
import type { ServedResources } from '../resources/served.ts';
import type { RouteOptions } from '../resources/route-docs.ts';
import { resourceRoutes, type KnownFields } from '../resources/resource-routes.ts';
import type { DocumentOptions } from '../openapi/document.ts';
import { getOpenApi } from '../openapi/document-routes.ts';
import { getMetrics, type MetricValues } from '../telemetry/metrics.ts';
import { cutStream, listStreams, type StreamRoutesOptions } from '../telemetry/stream-routes.ts';
import { FILE_FORMATS } from '../resources/stream/formats/list.ts';
import { userRoutes, type UserOptions } from '../users/user-routes.ts';
import { clientRoutes } from '../web/clients.ts';
import { explorerRoutes, referenceRoutes } from '../web/page-routes.ts';

interface AppOptions {
  /** Items are one of them, where they are served. */
  readonly resources: RouteOptions & { readonly served: Pick<ServedResources, 'now' | 'mayCome'> };
  /** null: no users are served. */
  readonly users: UserOptions | null;
  /** null: none are served. */
  readonly exports: ExportOptions | null;
  /** null: no resource has any. */
  readonly editions: Editions | null;
  readonly health: HealthOptions;
  /** Origins whose scripts may read answers: `*`, or a list separated by commas. undefined: none. */
  readonly corsOrigin: string | undefined;
  readonly admissions: Pick<Admissions, 'admit' | 'acquire' | 'idle' | 'mayGoOn'>;
  readonly readMount: MountReader;
  /** Writes the request log and updates the metrics. */
  readonly observer: Observer;
  readonly document: DocumentOptions;
  /** The metric values of all processes of this server. */
  readonly metrics: () => Promise<readonly MetricValues[]>;
  /** Lists the streams of this process while they are sent. */
  readonly streams: Pick<OpenStreams, 'listed'>;
  /** The streams of all processes of this server. */
  readonly allStreams: StreamRoutesOptions;
}

/** The tables list every path with its route, and follow the resources served now. `serve` is what an engine calls. */
export function createApp(options: AppOptions) {
  const { users } = options;
  const { served } = options.resources;
  const clients = clientRoutes();
  const own = ownTable(options, clients.files);
  const tables = new WeakMap<OpenResource, readonly Route[]>();
  const ofRows = (one: OpenResource) => getOrMake(tables, one, () => rowsTable(one, options));
  const made = (open: readonly OpenResource[]) => {
    const routes = [
      ...open.flatMap(ofRows),
      ...(users ? usersTable(users) : []),
      ...listsTable(open, own, clients.list, options),
    ];
    return { open, routes, router: createRouter(routes) };
  };
  let current = made(served.now);
  const now = () => {
    if (current.open !== served.now) current = made(served.now);
    return current;
  };
  const router: Router = {
    find: (request) => now().router.find(request),
    mayCome: (name) => served.mayCome(name),
    get lists() {
      return now().router.lists;
    },
  };
  return {
    serve: new Responder(router, { ...options, cors: createCors(options.corsOrigin) }).serve,
    routes: () => now().routes,
  };
}

/** The routes that depend on no resource. */
function ownTable(options: AppOptions, clients: readonly Route[]): readonly Route[] {
  const reference = referenceRoutes();
  const explorer = explorerRoutes(FILE_FORMATS);
  const routes = table({
    'GET /livez': getLiveness,
    'GET /readyz': getReadiness(options.health),
    'GET /metrics': getMetrics(options.metrics),
    'GET /metrics/streams': listStreams(options.allStreams),
    'DELETE /metrics/streams/{id}': cutStream(options.allStreams),
    'GET /problems/{code}': getProblem,

    'GET /': explorer.page,
    'GET /docs': reference.page,
    'GET /docs/start.js': reference.start,
    'GET /docs/scalar.js': reference.script,
  });
  return [...routes, ...explorer.files, ...clients];
}

/** The routes that depend on which resources there are: lists, exports and the document of all routes. `own`: the others. */
function listsTable(
  open: readonly OpenResource[],
  own: readonly Route[],
  clients: Route,
  options: AppOptions,
): readonly Route[] {
  const { users, exports } = options;
  const sources = exportSources(open);
  const mayCome = (name: string) => options.resources.served.mayCome(name);
  const serves = {
    users: users !== null,
    exports: exports !== null,
    editions: (name: string) => (options.editions ? accessToEditions(options.editions, name) : null),
  };
  const lists = table({
    'GET /resources': listResources(
      open.map(({ resource }) => resource),
      serves,
    ),
    'GET /changes': severalChangesRoute(open, options.resources, mayCome),
    'GET /clients': clients,
  });
  const rest = [...lists, ...own];
  const document = getOpenApi(
    (client) => [
      ...(users ? usersTable(users, client) : []),
      ...(exports ? exportsTable(exports, sourcesShownTo(client, sources)) : []),
      ...rest,
    ],
    documentedRoutes(open, (one, known) => rowsTable(one, options, known)),
    options.document,
  );
  const ofExports = exports ? exportsTable(exports, sources) : [];
  return [...ofExports, ...rest, ...table({ 'GET /openapi.json': document })];
}

function exportsTable(options: ExportOptions, sources: ExportSources): readonly Route[] {
  const exports = exportRoutes(options, sources);
  return table({
    'GET /exports': exports.list,
    'POST /exports': exports.order,
    'GET /exports/{id}': exports.get,
    'DELETE /exports/{id}': exports.delete,
    'GET /exports/{id}/file': exports.file,
  });
}

/** What the document of a client names. One without the key that is required is told of no resource. */
function sourcesShownTo(client: Client, sources: ExportSources): ExportSources {
  return client.key === null && client.hasKey ? new Map() : sourcesFor(client, sources);
}

/** The routes of each resource, items among them. */
function rowsTable(one: OpenResource, options: AppOptions, known?: KnownFields): readonly Route[] {
  const { resource } = one;
  const rows = ofResource(resource.name, resourceRoutes(one, options.resources, known));
  const { editions } = options;
  const isDocument = known !== undefined;
  return table(
    {
      ...(editions?.declared(resource.name) === true
        ? editionsOf(resource, editions)
        : !isDocument && withoutEditions(resource)),
      'GET /{resource}': rows.list,
      'GET /{resource}/stream': options.exports
        ? orExport(rows.stream, resource, options.exports)
        : rows.stream,
      'GET /{resource}/changes': rows.changes,
      'GET /{resource}/partitions': rows.partitions,
      'GET /{resource}/values': rows.values,
      'GET /{resource}/{id}': rows.get,
    },
    resource.name,
  );
}

function accessToEditions(editions: Editions, resource: string): 'open' | 'keyed' | null {
  if (!editions.declared(resource)) return null;
  return editions.isPublic(resource) ? 'open' : 'keyed';
}

function editionsOf(resource: Resource, editions: Editions): Readonly<Record<string, Route>> {
  const made = ofResource(resource.name, editionRoutes({ resource, editions }));
  return {
    'GET /{resource}/edition': made.newest,
    'POST /{resource}/edition': made.make,
    'GET /{resource}/edition/{name}': made.kept,
    'GET /{resource}/chunks/{file}': made.file,
  };
}

/** What a document does not name. */
function withoutEditions(resource: Resource): Readonly<Record<string, Route>> {
  return { 'GET /{resource}/edition': ofResource(resource.name, { none: noEditionRoute(resource) }).none };
}

/** The routes of users. `client`: whose users their documentation is about. */
function usersTable(options: UserOptions, client?: Client): readonly Route[] {
  const users = ofResource('users', userRoutes(options, client));
  return table({
    'GET /api/users': users.list,
    'POST /api/users': users.create,
    'GET /api/users/{id}': users.get,
    'PUT /api/users/{id}': users.put,
    'PATCH /api/users/{id}': users.patch,
    'DELETE /api/users/{id}': users.delete,
  });
}

function ofResource<K extends string>(
  resource: string,
  routes: Readonly<Record<K, Route>>,
): Readonly<Record<K, Route>> {
  const named = Object.entries<Route>(routes).map(([key, route]) => [key, { ...route, resource }]);
  return Object.fromEntries(named) as Record<K, Route>;
}

/** The routes of a table. Throws a TypeError when one has another method or path than its key there. */
function table(routes: Readonly<Record<string, Route>>, resource = ''): readonly Route[] {
  return Object.entries(routes).map(([name, route]) => {
    if (name.replace('{resource}', resource) !== `${route.method} ${route.path}`)
      throw new TypeError(`${name} is answered by ${route.method} ${route.path}`);
    return route;
  });
}

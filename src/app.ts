import { referenceRoutes } from './web/reference.ts';
import { exportRoutes, orExport, type ExportOptions } from './exports/routes.ts';
import { getLiveness, getReadiness, type HealthOptions } from './telemetry/health.ts';
import type { Admissions } from './access/admission.ts';
import { createCors } from './http/cors.ts';
import type { Serve } from './engine/edge.ts';
import { getProblem } from './http/problem-pages.ts';
import { createServe, type Observer } from './http/respond.ts';
import type { Route } from './http/route.ts';
import { createRouter } from './http/router.ts';
import { documentedRoutes } from './resources/documented-routes.ts';
import { listResources } from './resources/list.ts';
import type { OpenResource } from './resources/open.ts';
import { resourceRoutes, type ResourceOptions } from './resources/routes.ts';
import type { DocumentOptions } from './openapi/document.ts';
import { getOpenApi } from './openapi/routes.ts';
import { getMetrics, type MetricValues } from './telemetry/metrics.ts';
import { FILE_FORMATS } from './resources/stream/formats/list.ts';
import { usersFor, type UserPart } from './users/part.ts';
import { userRoutes, type UserOptions } from './users/routes.ts';
import { clientRoutes } from './web/clients.ts';
import { webRoutes } from './web/routes.ts';

export interface AppOptions {
  /** Items are one of them. */
  readonly resources: ResourceOptions & { readonly open: readonly OpenResource[] };
  readonly users: UserOptions;
  readonly exports: ExportOptions;
  readonly health: HealthOptions;
  /** Origins whose scripts may read answers: `*`, or a list separated by commas. undefined: none. */
  readonly corsOrigin: string | undefined;
  readonly admissions: Pick<Admissions, 'admit' | 'acquire' | 'mayGoOn'>;
  /** Writes the request log and updates the metrics. */
  readonly observer: Observer;
  readonly document: DocumentOptions;
  /** The metric values of all processes of this server. */
  readonly metrics: () => Promise<readonly MetricValues[]>;
}

export interface App {
  readonly serve: Serve;
  readonly routes: readonly Route[];
}

/**
 * Creates the application: the tables list every path with the route that answers it. `serve` is the function that an
 * engine calls. A route answers each client by what its key opens.
 */
export function createApp(options: AppOptions): App {
  const { open } = options.resources;
  const exports = exportRoutes(options.exports);
  const reference = referenceRoutes();
  const web = webRoutes(FILE_FORMATS);
  const clients = clientRoutes();
  const hasClients = open.some(({ resource }) => resource.name === 'clients');
  const routes = table({
    'GET /resources': listResources(open.map(({ resource }) => resource)),

    'GET /exports': exports.list,
    'POST /exports': exports.order,
    'GET /exports/{id}': exports.get,
    'DELETE /exports/{id}': exports.delete,
    'GET /exports/{id}/file': exports.file,

    'GET /livez': getLiveness,
    'GET /readyz': getReadiness(options.health),
    'GET /metrics': getMetrics(options.metrics),
    'GET /problems/{code}': getProblem,

    'GET /': web.page,
    [`GET ${web.file.path}`]: web.file,
    'GET /docs': reference.page,
    'GET /docs/start.js': reference.start,
    'GET /docs/scalar.js': reference.script,
    ...(!hasClients && { 'GET /clients': clients.list }), // a resource of that name comes first
    ...Object.fromEntries(clients.files.map((file) => [`GET ${file.path}`, file])),
  });
  const ofRows = (one: OpenResource) => rowsTable(one, options);
  const document = getOpenApi(
    (client) => [...usersTable(options.users, usersFor(options.users.users, client).part), ...routes],
    documentedRoutes(open, ofRows),
    options.document,
  );
  const all = [
    ...open.flatMap(ofRows),
    ...usersTable(options.users),
    ...routes,
    ...table({ 'GET /openapi.json': document }),
  ];
  const cors = createCors(options.corsOrigin);
  return { serve: createServe(createRouter(all), { ...options, cors }), routes: all };
}

/** The routes of each resource, items among them. */
function rowsTable(one: OpenResource, { resources, exports }: AppOptions): readonly Route[] {
  const { resource } = one;
  const rows = ofResource(resource.name, resourceRoutes(one, resources));
  return table(
    {
      'GET /{resource}': rows.list,
      'GET /{resource}/stream': orExport(rows.stream, resource, exports),
      'GET /{resource}/changes': rows.changes,
      'GET /{resource}/partitions': rows.partitions,
      'GET /{resource}/values': rows.values,
      'GET /{resource}/{id}': rows.get,
    },
    resource.name,
  );
}

/** The routes of users. `part`: the users that their documentation is about. */
function usersTable(options: UserOptions, part?: UserPart): readonly Route[] {
  const users = ofResource('users', userRoutes(options, part));
  return table({
    'GET /api/users': users.list,
    'POST /api/users': users.create,
    'GET /api/users/{id}': users.get,
    'PUT /api/users/{id}': users.put,
    'PATCH /api/users/{id}': users.patch,
    'DELETE /api/users/{id}': users.delete,
  });
}

/** The routes with the name of their resource. */
function ofResource<K extends string>(
  resource: string,
  routes: Readonly<Record<K, Route>>,
): Readonly<Record<K, Route>> {
  const named = Object.entries<Route>(routes).map(([key, route]) => [key, { ...route, resource }]);
  return Object.fromEntries(named) as Record<K, Route>;
}

/**
 * Returns the routes of a table. Throws a TypeError when a route has another method or path than its key in the
 * table. `resource`: what `{resource}` stands for.
 */
function table(routes: Readonly<Record<string, Route>>, resource = ''): readonly Route[] {
  return Object.entries(routes).map(([name, route]) => {
    if (name.replace('{resource}', resource) !== `${route.method} ${route.path}`)
      throw new TypeError(`${name} is answered by ${route.method} ${route.path}`);
    return route;
  });
}

import { referenceRoutes } from './web/reference.ts';
import { exportRoutes, orExport, type ExportOptions } from './exports/routes.ts';
import { sourceOf } from './exports/source.ts';
import { getLiveness, getReadiness, type HealthOptions } from './telemetry/health.ts';
import type { Admissions } from './access/admission.ts';
import { createCors } from './http/cors.ts';
import type { Serve } from './engine/edge.ts';
import { getProblem } from './http/problem-pages.ts';
import { createServe, type Observer } from './http/respond.ts';
import type { Route } from './http/route.ts';
import { createRouter } from './http/router.ts';
import { followingRoutes } from './resources/following.ts';
import { listOfResource, listOfUsers, listResources } from './resources/list.ts';
import type { OpenResource } from './resources/open.ts';
import { resourceRoutes, type ResourceOptions } from './resources/routes.ts';
import { scopedIndexes, scopedResource } from './resources/scoped.ts';
import { changesOfPart } from './scopes/changes.ts';
import { Scopes, type MakeScope } from './scopes/routes.ts';
import type { Scope } from './access/rights.ts';
import type { DocumentOptions } from './http/openapi/document.ts';
import { getOpenApi } from './http/openapi/routes.ts';
import type { MetricValues } from './telemetry/metrics.ts';
import { getMetrics } from './telemetry/metrics-route.ts';
import { userRoutes, type UserOptions } from './users/routes.ts';
import { usersInPart } from './users/source.ts';
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

/** The application. `scopes` makes the routes of keys that open parts of resources. */
export interface App {
  readonly serve: Serve;
  readonly routes: readonly Route[];
  readonly scopes: Pick<Scopes, 'prepare' | 'has' | 'add' | 'refusalOf'>;
}

/**
 * Creates the application: the table lists every path with the route that answers it. `serve` is the function that an
 * engine calls.
 */
export function createApp(options: AppOptions): App {
  const { open } = options.resources;
  const scopes: Scopes = new Scopes(scopeMakers(options));
  const users = ofResource('users', userRoutes(options.users));
  const exports = exportRoutes(options.exports);
  const reference = referenceRoutes();
  const web = webRoutes();
  const routes = table({
    'GET /resources': listResources(
      [...open.map(({ resource }) => listOfResource(resource)), listOfUsers],
      (list, client) => scopes.listOf(list, client),
    ),

    'GET /api/users': users.list,
    'POST /api/users': users.create,
    'GET /api/users/{id}': users.get,
    'PUT /api/users/{id}': users.put,
    'PATCH /api/users/{id}': users.patch,
    'DELETE /api/users/{id}': users.delete,

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
  });
  const rowsOf = (one: OpenResource): readonly Route[] => routesOfResource(one, options);
  const document = getOpenApi(routes, followingRoutes(open, rowsOf), options.document, (route, client) =>
    scopes.routeOf(route, client),
  );
  const all = [...open.flatMap(rowsOf), ...routes, ...table({ 'GET /openapi.json': document })];
  const serve = createServe(createRouter(all), {
    ...{ ...options, cors: createCors(options.corsOrigin) },
    findFor: (request, found, client) => scopes.find(request, found, client),
  });
  return { serve, routes: all, scopes };
}

/** The routes of a resource, which its name finds. `scope`: the part of it that this is. */
function routesOfResource(
  one: OpenResource,
  { resources, exports }: AppOptions,
  scope?: Scope,
): readonly Route[] {
  const { name } = one.resource;
  const rows = ofResource(name, resourceRoutes(one, resources));
  const source = sourceOf({ resource: name, ...(scope && { scope }) }, exports.sources);
  return table(
    {
      'GET /{resource}': rows.list,
      'GET /{resource}/stream': orExport(rows.stream, source, exports),
      'GET /{resource}/changes': rows.changes,
      'GET /{resource}/partitions': rows.partitions,
      'GET /{resource}/values': rows.values,
      'GET /{resource}/{id}': rows.get,
    },
    name,
  );
}

/** How the parts of resources are made that keys open. */
function scopeMakers(options: AppOptions): ReadonlyMap<string, MakeScope> {
  const ofUsers: MakeScope = async (scope) => {
    const routes = userRoutes(options.users, await usersInPart(options.users.users, scope));
    return {
      routes: Object.values(ofResource('users', routes)),
      list: listOfUsers,
      changes: { are: false, refusal: null },
    };
  };
  const makers = options.resources.open.map(({ resource }) => {
    const make: MakeScope = async (scope) => {
      const scoped = scopedResource(resource, scope);
      const indexes = await scopedIndexes(scoped);
      return {
        routes: routesOfResource({ resource: scoped, indexes }, options, scope),
        list: listOfResource(scoped),
        changes: await changesOfPart(scoped.rows),
      };
    };
    return [resource.name, make] as const;
  });
  return new Map([['users', ofUsers], ...makers]);
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

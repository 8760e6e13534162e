import { docsRoutes } from './docs/routes.ts';
import { exportRoutes, orExport, type ExportRoutesOptions } from './exports/routes.ts';
import { healthRoutes, type HealthOptions } from './health.ts';
import type { Admissions } from './http/admit.ts';
import { createCors } from './http/cors.ts';
import type { Request, Serve } from './http/edge.ts';
import { problemRoutes } from './http/problem-pages.ts';
import { createServe, type Observer } from './http/respond.ts';
import { createRouter, type Handler, type Route } from './http/router.ts';
import { itemRoutes, type ItemRoutesOptions } from './items/routes.ts';
import type { DocumentOptions } from './openapi/document.ts';
import { documentRoutes } from './openapi/routes.ts';
import type { MetricValues } from './telemetry/metrics.ts';
import { metricsRoutes } from './telemetry/routes.ts';
import { userRoutes, type UserRoutesOptions } from './users/routes.ts';
import { webRoutes } from './web/routes.ts';

export interface AppOptions {
  readonly items: Omit<ItemRoutesOptions, 'streaming'>;
  readonly users: UserRoutesOptions;
  readonly exports: Omit<ExportRoutesOptions, 'streaming' | 'clientOf'>;
  readonly health: HealthOptions;
  /** Origins whose scripts may read answers: `*` or a list with commas; undefined: none. */
  readonly corsOrigin: string | undefined;
  readonly admissions: Pick<Admissions, 'admit' | 'streaming' | 'clientOf'>;
  /** Writes the log and counts. */
  readonly observer: Observer;
  readonly document: DocumentOptions;
  /** What all processes of this server count. */
  readonly metrics: () => Promise<readonly MetricValues[]>;
}

/** The product on one screen: which resources there are. `serve` is what an engine serves. */
export function createApp({
  items,
  users,
  exports,
  health,
  corsOrigin,
  admissions,
  observer,
  metrics,
  document,
}: AppOptions): { readonly serve: Serve; readonly routes: readonly Route[] } {
  const streaming = (handler: Handler) => admissions.streaming(handler);
  const exporting = { ...exports, streaming, clientOf: (request: Request) => admissions.clientOf(request) };
  // Each row has its `doc`, an Operation of openapi/operation.ts: /openapi.json is made of them and of the schemas they name.
  const routes = [
    ...itemRoutes({ ...items, streaming: (handler) => orExport(exporting, streaming(handler)) }),
    ...userRoutes(users),
    ...exportRoutes(exporting),
    ...healthRoutes(health),
    ...metricsRoutes(metrics),
    ...problemRoutes(),
    ...webRoutes(),
    ...docsRoutes(),
  ];
  const all = [...routes, ...documentRoutes(routes, document)];
  const serve = createServe(createRouter(all), { observer, admissions, cors: createCors(corsOrigin) });
  return { serve, routes: all };
}

import { createCors } from './http/cors.ts';
import type { Serve } from './http/edge.ts';
import { problemRoutes } from './http/problem-pages.ts';
import { createServe, type Log } from './http/respond.ts';
import { createRouter } from './http/router.ts';
import { itemRoutes, type ItemRoutesOptions } from './items/routes.ts';

export interface AppOptions {
  readonly items: ItemRoutesOptions;
  /** Origins whose scripts may read answers: `*` or a list with commas; undefined: none. */
  readonly corsOrigin: string | undefined;
  readonly log: Log;
}

/** The product on one screen: which resources there are. The result is what an engine serves. */
export function createApp({ items, corsOrigin, log }: AppOptions): Serve {
  const route = createRouter([...itemRoutes(items), ...problemRoutes()]);
  return createServe(route, { log, cors: createCors(corsOrigin) });
}

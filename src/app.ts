import type { Serve } from './http/edge.ts';
import { createServe, type Log } from './http/respond.ts';
import { createRouter } from './http/router.ts';
import { itemRoutes, type ItemRoutesOptions } from './items/routes.ts';

/** The product on one screen: which resources there are. The result is what an engine serves. */
export function createApp(options: { readonly items: ItemRoutesOptions; readonly log: Log }): Serve {
  const route = createRouter([...itemRoutes(options.items)]);
  return createServe(route, options.log);
}

import { AppError } from '../errors.ts';
import type { Route } from '../http/route.ts';
import type { Index } from '../store/indexes.ts';
import type { OpenResource } from './open.ts';
import { indexesOf } from './resource.ts';

/** How long a look waits for the store. Milliseconds. */
const LOOK_MS = 1_000;

/**
 * Returns a function that describes the routes of resources by the indexes that these have now: the stores read them
 * again every minute, and after each change that a read meets. It resolves with the same array while nothing has
 * changed. A resource that cannot be read now is described by its last known indexes. `make` describes one resource.
 */
export function followingRoutes(
  open: readonly OpenResource[],
  make: (one: OpenResource) => readonly Route[],
): (signal: AbortSignal) => Promise<readonly Route[]> {
  let known = open;
  let routes = known.flatMap(make);
  return async (signal) => {
    const now = await Promise.all(known.map(async (one) => ({ ...one, indexes: await lookAt(one, signal) })));
    if (textOf(now) === textOf(known)) return routes;
    known = now;
    routes = known.flatMap(make);
    return routes;
  };
}

async function lookAt({ resource, indexes }: OpenResource, signal: AbortSignal): Promise<readonly Index[]> {
  const limit = AbortSignal.timeout(LOOK_MS);
  try {
    return await indexesOf(resource, AbortSignal.any([signal, limit]));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AppError || limit.aborted) return indexes;
    throw error;
  }
}

function textOf(open: readonly OpenResource[]): string {
  return JSON.stringify(open.map(({ indexes }) => indexes));
}

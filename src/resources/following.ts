import { AppError } from '../errors.ts';
import type { Route } from '../http/route.ts';
import { kindsOf } from './list.ts';
import { askableOfResource } from './not-indexed.ts';
import type { OpenResource } from './open.ts';
import { indexesOf } from './resource.ts';

/** How long a look waits for the store. Milliseconds. */
const LOOK_MS = 1_000;

/**
 * Returns a function that describes the routes of resources by the indexes and kinds that these have now: the stores read them
 * again every minute, and after each change that a read meets. It resolves with the same array while nothing has
 * changed. A resource that cannot be read now is described by what was known last. `make` describes one resource.
 */
export function followingRoutes(
  open: readonly OpenResource[],
  make: (one: OpenResource) => readonly Route[],
): (signal: AbortSignal) => Promise<readonly Route[]> {
  let known = open;
  let routes = known.flatMap(make);
  return async (signal) => {
    const now = await Promise.all(known.map((one) => lookAt(one, signal)));
    if (textOf(now) === textOf(known)) return routes;
    known = now;
    routes = known.flatMap(make);
    return routes;
  };
}

async function lookAt(one: OpenResource, signal: AbortSignal): Promise<OpenResource> {
  const { resource } = one;
  const limit = AbortSignal.timeout(LOOK_MS);
  const either = AbortSignal.any([signal, limit]);
  try {
    const indexes = await indexesOf(resource, either);
    return {
      resource,
      indexes,
      kinds: await kindsOf(resource, askableOfResource(resource, indexes), either),
    };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AppError || limit.aborted) return one;
    throw error;
  }
}

function textOf(open: readonly OpenResource[]): string {
  return JSON.stringify(open.map(({ indexes, kinds }) => [indexes, kinds]));
}

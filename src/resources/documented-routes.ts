import type { Client } from '../access/admission.ts';
import { opens, type Rights } from '../access/rights.ts';
import { AppError } from '../errors.ts';
import type { Route } from '../http/route.ts';
import { firstAbort } from '../store/deadline.ts';
import { kindsOf } from './list.ts';
import { askableOfResource } from './query/not-indexed.ts';
import type { OpenResource } from './open.ts';
import { resourceFor } from './query/part.ts';
import { indexesOf } from './query/resource.ts';

/** How long a look waits for the store. Milliseconds. */
const LOOK_MS = 1_000;

/** Resolves with the routes of resources as a client has them. */
export type RoutesFor = (client: Pick<Client, 'key'>, signal: AbortSignal) => Promise<readonly Route[]>;

/**
 * Returns a function that describes the routes of resources by the indexes and kinds that these have now: the stores read them
 * again every minute, and after each change that a read meets. It resolves with the same array while nothing has
 * changed. A resource that cannot be read now is described by what was known last. `make` describes one resource.
 */
export function documentedRoutes(
  open: readonly OpenResource[],
  make: (one: OpenResource) => readonly Route[],
): RoutesFor {
  const whole = following(open, make);
  const parts = new WeakMap<Rights, ReturnType<typeof following>>();
  return (client, signal) => {
    const rights = client.key?.rights;
    if (!rights || rights.scopes.size === 0) return whole(signal);
    const known = open.filter(({ resource }) => opens(rights, resource.name));
    const ofClient = () =>
      known.map(({ resource }): OpenResource => ({ resource: resourceFor(resource, client), indexes: [] }));
    const own = parts.get(rights) ?? following(ofClient(), make);
    parts.set(rights, own);
    return own(signal);
  };
}

function following(open: readonly OpenResource[], make: (one: OpenResource) => readonly Route[]) {
  let known = open;
  let routes = known.flatMap(make);
  return async (signal: AbortSignal): Promise<readonly Route[]> => {
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
  const either = firstAbort([limit], signal);
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

import type { Client } from '../access/admission.ts';
import { opens, type Rights } from '../access/rights.ts';
import { AppError } from '../errors.ts';
import { getOrMake } from '../get-or-make.ts';
import type { Route } from '../http/route.ts';
import { firstAbort } from '../store/deadline.ts';
import { kindsOf } from './list.ts';
import { askableOfResource } from './query/not-indexed.ts';
import type { OpenResource } from './open.ts';
import { resourceFor } from './query/part.ts';
import { indexesOf, type Resource } from './query/resource.ts';
import { NOT_KNOWN, type Known } from './routes.ts';

/** How long a look waits for the store. Milliseconds. */
const LOOK_MS = 1_000;

/** Resolves with the routes of resources as a client has them. */
export type RoutesFor = (client: Pick<Client, 'key'>, signal: AbortSignal) => Promise<readonly Route[]>;

/** Describes one resource. */
type Make = (one: OpenResource, known: Known) => readonly Route[];

/**
 * Returns a function that describes the routes of resources by the indexes and kinds that these have now: the stores read them
 * again every minute, and after each change that a read meets. It resolves with the same array while nothing has
 * changed. A resource that cannot be read now is described by what was known last.
 */
export function documentedRoutes(open: readonly OpenResource[], make: Make): RoutesFor {
  const whole = following(open, make);
  const parts = new WeakMap<Rights, ReturnType<typeof following>>();
  return (client, signal) => {
    const rights = client.key?.rights;
    if (!rights || rights.scopes.size === 0) return whole(signal);
    const ofClient = () =>
      open
        .filter(({ resource }) => opens(rights, resource.name))
        .map(({ resource }) => ({ resource: resourceFor(resource, client) }));
    return getOrMake(parts, rights, () => following(ofClient(), make))(signal);
  };
}

function following(open: readonly OpenResource[], make: Make) {
  let known = open.map(() => NOT_KNOWN);
  let routes = open.flatMap((one) => make(one, NOT_KNOWN));
  return async (signal: AbortSignal): Promise<readonly Route[]> => {
    const now = await Promise.all(
      open.map(({ resource }, n) => lookAt(resource, known[n] ?? NOT_KNOWN, signal)),
    );
    if (JSON.stringify(now) === JSON.stringify(known)) return routes;
    known = now;
    routes = open.flatMap((one, n) => make(one, now[n] ?? NOT_KNOWN));
    return routes;
  };
}

async function lookAt(resource: Resource, last: Known, signal: AbortSignal): Promise<Known> {
  let { indexes, kinds } = last;
  const limit = AbortSignal.timeout(LOOK_MS);
  const either = firstAbort([limit], signal);
  try {
    indexes = await indexesOf(resource, either);
    kinds = await kindsOf(resource, askableOfResource(resource, indexes), either);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof AppError) && !limit.aborted) throw error;
  }
  return { indexes, kinds };
}

import type { Client } from '../access/admission.ts';
import { forbidden, opens } from '../access/rights.ts';
import type { Reply } from '../engine/edge.ts';
import { AppError } from '../base/errors.ts';
import { aroundWrites } from './reply.ts';
import type { Route } from './route.ts';

type RouteRights = Pick<Route, 'access' | 'right' | 'resource'>;

/** Whether a client may know of a resource. Otherwise it gets the very answer of a path that nothing has. */
export function mayKnow({ key }: Pick<Client, 'key'>, resource: string | null): boolean {
  return key === null || opens(key.rights, resource);
}

/** Whether a path is no secret: it belongs to no resource, or to users, whose path is the same on every server. */
export function isPublicName({ resource, path }: { resource?: string | null; path: string }): boolean {
  return (resource ?? null) === null || path.startsWith('/api/');
}

/** Why a client may not use a route that it may know of: AppError `forbidden`. null: it may. */
export function refusalOf(
  { key }: Pick<Client, 'key'>,
  { access, right, resource }: RouteRights,
): AppError | null {
  if (key === null || access !== 'keyed' || key.rights.hash === '' || right === 'any') return null;
  // A route that names no right is for keys without limits alone.
  if (right === undefined) return new AppError('forbidden', 'Only a key without limits may do this.');
  return key.rights.actions.has(right) ? null : forbidden(right, resource ?? null);
}

export function mayUse(client: Pick<Client, 'key'>, route: RouteRights): boolean {
  return mayKnow(client, route.resource ?? null) && refusalOf(client, route) === null;
}

/** The reply, cut at its next piece once `mayGoOn` is false: the key has ended, or has lost the right. */
export function revocable(reply: Reply, mayGoOn: () => boolean): Reply {
  return aroundWrites(reply, (write) => {
    if (mayGoOn()) return write();
    throw keyEnded();
  });
}

/** The key was valid when the answer began. */
export function keyEnded(): AppError {
  return new AppError('forbidden', 'The key has expired, was removed, or lost the right to this answer.');
}

import type { Client } from '../access/admission.ts';
import type { Reply } from '../engine/edge.ts';
import type { Precondition } from '../http/precondition.ts';
import { empty, json } from '../http/reply.ts';
import type { Changed, Records } from '../store/records.ts';
import { isUserId, noSuchUser } from './id.ts';
import { fromRow, represent } from './row.ts';
import type { UserPart } from './part.ts';
import type { User } from './user.ts';

/** RFC 9110, 9.3.3: the answer to a write must not be served again. */
export const NOT_CACHED = { 'cache-control': 'no-store' };

/**
 * Changes a user of a part. AppError `not-found`, also for a user outside of the part, comes before any precondition: a
 * request that would fail without preconditions fails the same way with them (RFC 9110, 13.2.1). The user is in the part
 * before and after the change, or nothing is written.
 */
export async function changeExisting(
  { users, part }: WrittenUsers,
  id: string,
  check: Precondition,
  change: (user: User) => Uint8Array | null | 'keep',
): Promise<Changed> {
  if (!isUserId(id)) throw noSuchUser(id);
  return users.change(id, (current) => {
    if (!current || !part.has(current)) throw noSuchUser(id);
    check(stateOf(current));
    const after = change(fromRow(current));
    return after === null || after === 'keep' ? after : part.checked(after);
  });
}

/** The users that a client may write. */
export interface WrittenUsers {
  readonly users: Pick<Records, 'change'>;
  readonly part: UserPart;
}

/** The state that a precondition is checked against. */
export function stateOf(current: Uint8Array | null): Parameters<Precondition>[0] {
  return current ? { etag: represent(current).etag } : 'missing';
}

/**
 * The answer to a write: the user as it now is, or nothing of it for a key that may not read users. `path` is the path of
 * all users. PUT has the tag, too, although the
 * server stores more than was sent (RFC 9110, 9.3.4 has reservations): Content-Location says that the tag is of this
 * answer's body, and not of the request's.
 */
export function written(status: 200 | 201, path: string, { after }: Changed, { key }: Client): Reply {
  if (!after) throw new TypeError('a user was to be written');
  const url = `${path}/${fromRow(after).id}`;
  const place = status === 201 ? { location: url } : {};
  if (key && !key.rights.actions.has('read'))
    return empty(status === 201 ? 201 : 204, { ...NOT_CACHED, ...place });
  const { text, etag } = represent(after);
  return json(status, text, { ...NOT_CACHED, etag, 'content-location': url, ...place });
}

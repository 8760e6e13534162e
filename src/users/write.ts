import type { Reply } from '../engine/edge.ts';
import type { Precondition } from '../http/precondition.ts';
import { json } from '../http/reply.ts';
import type { Changed, RecordStore } from '../store/store.ts';
import { isUserId, noSuchUser } from './id.ts';
import { fromRow, represent } from './row.ts';
import type { User } from './user.ts';

/** RFC 9110, 9.3.3: an answer to a write is not to be served again. */
export const NOT_CACHED = { 'cache-control': 'no-store' };

/** AppError `not-found` before any precondition: a request that would fail without them fails so (RFC 9110, 13.2.1). */
export async function changeExisting(
  users: RecordStore,
  id: string,
  check: Precondition,
  change: (user: User) => Uint8Array | null | 'keep',
): Promise<Changed> {
  if (!isUserId(id)) throw noSuchUser(id);
  return users.change(id, (current) => {
    if (!current) throw noSuchUser(id);
    check(stateOf(current));
    return change(fromRow(current));
  });
}

/** What a precondition is checked against. */
export function stateOf(current: Uint8Array | null): Parameters<Precondition>[0] {
  return current ? { etag: represent(fromRow(current)).etag } : 'missing';
}

/**
 * The user as it now is; `path` is that of all users. The tag goes with PUT, too, although what was sent is not all that was stored (RFC 9110, 9.3.4
 * has reservations): Content-Location says that the body of this answer, not that of the request, is what the tag is of.
 */
export function written(status: 200 | 201, path: string, { after }: Changed): Reply {
  if (!after) throw new TypeError('a user was to be written');
  const user = fromRow(after);
  const { text, etag } = represent(user);
  const url = `${path}/${user.id}`;
  const place = status === 201 ? { location: url } : {};
  return json(status, text, { ...NOT_CACHED, etag, 'content-location': url, ...place });
}

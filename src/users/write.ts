import type { Client } from '../access/admission.ts';
import type { Reply, Request } from '../engine/edge.ts';
import { readPrecondition, type Precondition } from '../http/precondition.ts';
import { empty, json, NOT_STORED } from '../http/reply.ts';
import type { Changed, Records } from '../store/records.ts';
import { usersFor, type UserPart } from './part.ts';
import { fromRow, represent, toRow } from './row.ts';
import { isUserId, noSuchUser, PATH, type User } from './user.ts';

/** What a client may write, and the conditions of its request. */
export interface Write {
  readonly part: UserPart;
  readonly check: Precondition;
  /**
   * Changes a user of the part; null removes it. Where there is none, `create` makes it. Without `create`, AppError
   * `not-found`, also for a user outside of the part, comes before any precondition: a request that would fail without
   * preconditions fails the same way with them (RFC 9110, 13.2.1).
   */
  readonly change: (
    id: string,
    change: (user: User) => User | null | 'keep',
    create?: () => User,
  ) => Promise<Changed>;
}

/** Throws AppError `forbidden` when the key may not write users, and `invalid-header`. */
export function beginWrite(users: Records, request: Request, client: Client): Write {
  const part = usersFor(users, client);
  part.checkWritable();
  const check = readPrecondition(request);
  return {
    part,
    check,
    change: async (id, change, create) => {
      if (!create && !isUserId(id)) throw noSuchUser(id);
      return users.change(id, (current) => {
        const user = current && part.has(current) ? fromRow(current) : null;
        const next = user ? () => change(user) : create;
        if (!next) throw noSuchUser(id);
        check(current ? { etag: represent(current).etag } : 'missing');
        const after = next();
        return after === null || after === 'keep' ? after : part.checked(toRow(after));
      });
    },
  };
}

/**
 * The answer to a write: the user as it now is, or nothing of it for a key that may not read users. PUT has the tag,
 * too, although the server stores more than was sent (RFC 9110, 9.3.4 has reservations): Content-Location says that the
 * tag is of this answer's body, and not of the request's.
 */
export function written({ before, after }: Changed, { key }: Client): Reply {
  if (!after) throw new TypeError('a write that removed the user has another answer');
  const url = `${PATH}/${fromRow(after).id}`;
  const headers = before ? NOT_STORED : { ...NOT_STORED, location: url };
  if (key && !key.rights.actions.has('read')) return empty(before ? 204 : 201, headers);
  const { text, etag } = represent(after);
  return json(before ? 200 : 201, text, { ...headers, etag, 'content-location': url });
}

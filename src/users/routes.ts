import { AppError } from '../errors.ts';
import { readJsonBody } from '../http/body-json.ts';
import type { Reply, Request } from '../http/edge.ts';
import { mediaTypeNegotiator } from '../http/negotiate.ts';
import { prefers } from '../http/prefer.ts';
import { readPrecondition, type Precondition } from '../http/precondition.ts';
import { parseQuery, quote } from '../http/query.ts';
import { empty, json } from '../http/reply.ts';
import type { Handler, Route } from '../http/router.ts';
import { bodyCheck } from '../http/validate.ts';
import { pageHandler } from '../pages/handler.ts';
import type { PageLimits, PlanParameters } from '../pages/query.ts';
import type { Transcoder } from '../serialize/rows.ts';
import { serializers } from '../serialize/serializers.ts';
import { documentOf } from '../store/batch.ts';
import { makeBookmark } from '../store/bookmark.ts';
import type { Changed, RecordStore } from '../store/store.ts';
import { createUser, patchUser, replaceUser } from './change.ts';
import { isUserId, newUserId, noSuchUser } from './id.ts';
import { CREATE_USER, DELETE_USER, GET_USER, listUsers, PATCH_USER, PUT_USER } from './operations.ts';
import { fromRow, represent, toRow } from './row.ts';
import { USER_BODY, USER_PATCH, type User } from './user.ts';

export interface UserRoutesOptions {
  readonly users: RecordStore;
  readonly transcoder: Transcoder;
  readonly limits: PageLimits;
  /** Cache-Control of pages and users. */
  readonly cacheControl: string;
  /** The time in milliseconds since 1970. */
  readonly now: () => number;
}

const PATH = '/api/users';
const JSON_TYPE = 'application/json';
const BODY_TYPES = [JSON_TYPE];
const PATCH_TYPES = [JSON_TYPE, 'application/merge-patch+json'];
/** RFC 9110, 9.3.3: an answer to a write is not to be served again. */
const NOT_CACHED = { 'cache-control': 'no-store' };

/** In order of id, which is that of creation for ids made here; nothing to filter by. */
const BY_ID: PlanParameters = {
  collection: 'users',
  parameters: [],
  read: () => ({ order: 'id', direction: 1 }),
  fields: () => undefined,
};

const checkBody = bodyCheck(USER_BODY);
const checkPatch = bodyCheck(USER_PATCH);
const acceptable = mediaTypeNegotiator([JSON_TYPE]);

export function userRoutes(options: UserRoutesOptions): readonly Route[] {
  const one = `${PATH}/{id}`;
  return [
    {
      method: 'GET',
      path: PATH,
      doc: listUsers(options.limits, BY_ID),
      handler: pageHandler({ ...options, rows: options.users, plan: BY_ID }),
    },
    { method: 'POST', path: PATH, doc: CREATE_USER, handler: postUser(options), accepts: BODY_TYPES },
    { method: 'GET', path: one, doc: GET_USER, handler: getUser(options) },
    { method: 'PUT', path: one, doc: PUT_USER, handler: putUser(options), accepts: BODY_TYPES },
    { method: 'PATCH', path: one, doc: PATCH_USER, handler: patchOne(options), accepts: PATCH_TYPES },
    { method: 'DELETE', path: one, doc: DELETE_USER, handler: deleteUser(options) },
  ];
}

function postUser({ users, now }: UserRoutesOptions): Handler {
  return async (request) => {
    const check = beginWrite(request);
    const body = checkBody(await readJsonBody(request, BODY_TYPES));
    check({ etag: null }); // the target is the collection (RFC 9110, 13.1), which is there and has no strong tag
    const id = newUserId();
    const changed = await users.change(id, (current) => {
      if (current) throw new Error(`the new id ${id} is taken`);
      return toRow(createUser(id, body, now()));
    });
    return written(201, changed);
  };
}

function getUser({ users, cacheControl }: UserRoutesOptions): Handler {
  return async (request, { id = '' }) => {
    acceptable(request);
    parseQuery(request.query, []);
    const batch = isUserId(id) ? await users.get(makeBookmark({ _id: id }), request.signal) : null;
    if (!batch) throw noSuchUser(id);
    try {
      const { text, etag } = represent(fromRow(documentOf(batch)));
      request.notes.rows = 1;
      return json(200, text, { etag, 'cache-control': cacheControl });
    } finally {
      batch.release();
    }
  };
}

/** Replaces, or creates under this id. */
function putUser({ users, now }: UserRoutesOptions): Handler {
  return async (request, { id = '' }) => {
    const check = beginWrite(request);
    if (!isUserId(id))
      throw new AppError(
        'invalid-url',
        `A user's id is 1 to 64 of A-Z a-z 0-9 . _ ~ -, and not . or ..; it came as ${quote(id)}.`,
      );
    const body = checkBody(await readJsonBody(request, BODY_TYPES));
    const changed = await users.change(id, (current) => {
      check(stateOf(current));
      return toRow(current ? replaceUser(fromRow(current), body, now()) : createUser(id, body, now()));
    });
    return written(changed.before ? 200 : 201, changed);
  };
}

function patchOne({ users, now }: UserRoutesOptions): Handler {
  return async (request, { id = '' }) => {
    const check = beginWrite(request);
    const patch = checkPatch(await readJsonBody(request, PATCH_TYPES));
    const changed = await changeExisting(users, id, check, (user) => {
      const patched = patchUser(user, patch, now());
      return patched ? toRow(patched) : 'keep';
    });
    return written(200, changed);
  };
}

/** A body has no meaning here (RFC 9110, 9.3.5); the engine reads and drops it. */
function deleteUser({ users }: UserRoutesOptions): Handler {
  return async (request, { id = '' }) => {
    const check = beginWrite(request);
    await changeExisting(users, id, check, () => null);
    if (!prefers(request, 'return=minimal'))
      return json(200, serializers.removedUser({ id, deleted: true }), NOT_CACHED);
    return empty(204, { ...NOT_CACHED, 'preference-applied': 'return=minimal' });
  };
}

/** What is looked at before the body of every write: nothing is changed for an answer that the client would not take. */
function beginWrite(request: Request): Precondition {
  acceptable(request);
  parseQuery(request.query, []);
  return readPrecondition(request);
}

/** AppError `not-found` before any precondition: a request that would fail without them fails so (RFC 9110, 13.2.1). */
async function changeExisting(
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

function stateOf(current: Uint8Array | null): Parameters<Precondition>[0] {
  return current ? { etag: represent(fromRow(current)).etag } : 'missing';
}

/**
 * The user as it now is. The tag goes with PUT, too, although what was sent is not all that was stored (RFC 9110, 9.3.4
 * has reservations): Content-Location says that the body of this answer, not that of the request, is what the tag is of.
 */
function written(status: 200 | 201, { after }: Changed): Reply {
  if (!after) throw new TypeError('a user was to be written');
  const user = fromRow(after);
  const { text, etag } = represent(user);
  const url = `${PATH}/${user.id}`;
  const place = status === 201 ? { location: url } : {};
  return json(status, text, { ...NOT_CACHED, etag, 'content-location': url, ...place });
}

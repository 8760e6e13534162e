import { v7 } from 'uuid';
import type { Client } from '../access/admission.ts';
import type { Reply, Request } from '../engine/edge.ts';
import { AppError } from '../base/errors.ts';
import { readPrecondition } from '../http/precondition.ts';
import { removed } from '../http/prefer.ts';
import { empty, json, NOT_STORED } from '../http/reply.ts';
import {
  BODY_PROBLEMS,
  JSON_TYPE,
  jsonAnswer,
  removedWithoutBody,
  route,
  STORE_PROBLEMS,
  type Answer,
  type Route,
} from '../http/route.ts';
import { quote } from '../input/query.ts';
import type { ProblemCode } from '../base/problems.ts';
import { pageRoute } from '../resources/page/handler.ts';
import { resourceFor } from '../resources/query/scope.ts';
import type { RouteDocs, RouteOptions } from '../resources/route-docs.ts';
import { rowRoute } from '../resources/row/row.ts';
import type { RecordChange } from '../store/records.ts';
import { writerFor, type Users } from './scope.ts';
import { createUser, fromRow, patchUser, replaceUser, represent, toRow, type StoredUser } from './row.ts';
import { isUserId, PATH, REMOVED_USER, SHOWN_USER, USER, USER_BODY, USER_ID, USER_PATCH } from './user.ts';

export type UserOptions = Pick<RouteOptions, 'transcoder' | 'limits' | 'cacheControl'> & {
  readonly users: Users;
  /** The time in milliseconds since 1970. */
  readonly now: () => number;
};

/** What all routes of users share, what those of one user share, and what those that write share. */
const SHARED = { access: 'keyed', tag: 'Users', produces: [JSON_TYPE] } as const;
const ONE_USER = { path: `${PATH}/{id}`, parameters: { id: USER_ID } } as const;
const WRITE = {
  ...SHARED,
  cost: 'write',
  right: 'users:write',
  headers: ['If-Match', 'If-None-Match'],
} as const;
const WRITE_PROBLEMS: readonly ProblemCode[] = [
  'invalid-header',
  'precondition-failed',
  'insufficient-storage',
  ...STORE_PROBLEMS,
];

const CHANGED: Answer = jsonAnswer('The changed user', USER, ['ETag', 'Cache-Control', 'Content-Location']);
const CREATED: Answer = {
  ...jsonAnswer('The created user; no body for a key without the right read', USER, [
    'Cache-Control',
    'Location',
  ]),
  sometimes: ['ETag', 'Content-Location'],
};
const CHANGED_UNSEEN: Answer = {
  description: 'The user was changed; the key lacks the right read',
  headers: ['Cache-Control'],
};
const NEW_BODY = {
  types: [JSON_TYPE],
  schema: USER_BODY,
  example: { name: 'Ada', email: 'ada@example.org', metadata: { team: 'red' } },
};

/** The routes of users. `client`: whose users their documentation is about. */
export function userRoutes(options: UserOptions, client?: Client) {
  const { scope } = client ? resourceFor(options.users.resource, client) : {};
  return {
    ...readingRoutes(options, !scope || scope.given.hide.length === 0),
    create: createNew(options),
    put: putOne(options),
    patch: patchOne(options),
    delete: deleteOne(options),
  } satisfies Record<string, Route>;
}

/** GET of the users of a client, and of one. */
function readingRoutes(options: UserOptions, showsAll: boolean) {
  const docs: RouteDocs<'list' | 'get'> = {
    path: PATH,
    tag: SHARED.tag,
    noun: { one: 'user', many: 'users' },
    parameters: [],
    row: {
      name: showsAll ? 'User' : 'ShownUser',
      plural: 'users',
      schema: showsAll ? USER : SHOWN_USER,
    },
    ids: { list: 'listUsers', get: 'getUser' },
    list: {
      summary: 'List users',
      description:
        'Returns a page of users in order of id. Ids that the server makes grow with time, so their order is the order of creation.',
    },
    examples: {
      list: {
        request: '/api/users',
        answer: { data: [], page: { limit: 50, hasMore: false, nextCursor: null } },
      },
    },
  };
  const { resource } = options.users;
  return {
    list: pageRoute(docs, resource, false, options),
    get: {
      ...rowRoute(docs, resource, options),
      ...ONE_USER,
      summary: 'Get a user',
      description: 'The ETag of all fields is that of the answers to writes.',
    },
  };
}

function createNew({ users, now }: UserOptions): Route {
  return route({
    ...WRITE,
    method: 'POST',
    path: PATH,
    id: 'createUser',
    summary: 'Create a user under an id that the server makes',
    body: NEW_BODY,
    answers: { 201: CREATED },
    problems: [...BODY_PROBLEMS, ...WRITE_PROBLEMS],
    handler: async ({ request, body, client }) => {
      const writer = writerFor(users, client);
      const check = readPrecondition(request);
      const sent = writer.complete(await body());
      check({ etag: null }); // the target is the collection (RFC 9110, 13.1), which exists and has no strong tag
      const id = v7(); // RFC 9562, 5.7: such ids are in the order of their creation
      const change = await users.records.change(id, (current) => {
        if (current) throw new Error(`the new id ${id} is taken`);
        return toRow(writer.checked(createUser(id, sent, now())));
      });
      return written(change, client);
    },
  });
}

/** In a part of users it creates none: an id that is taken outside of it must be answered as one that is free. */
function putOne({ users, now }: UserOptions): Route {
  return route({
    ...WRITE,
    ...ONE_USER,
    method: 'PUT',
    id: 'putUser',
    summary: 'Replace a user, or create it under this id',
    description:
      'The body is the whole user: fields that it omits are removed. A key that opens a part of the users creates none.',
    body: NEW_BODY,
    answers: { 200: CHANGED, 201: CREATED, 204: CHANGED_UNSEEN },
    problems: ['invalid-url', 'not-found', ...BODY_PROBLEMS, ...WRITE_PROBLEMS],
    handler: async ({ request, parameters: { id = '' }, body, client }) => {
      const write = beginWrite(users, request, client);
      if (!isUserId(id))
        throw new AppError(
          'invalid-url',
          `The id of a user must be 1 to 64 characters of A-Z a-z 0-9 . _ ~ -, but not . or ..; got ${quote(id)}.`,
        );
      const sent = write.complete(await body());
      const create = write.isWhole ? () => createUser(id, sent, now()) : undefined;
      return written(await write.change(id, (user) => replaceUser(user, sent, now()), create), client);
    },
  });
}

function patchOne({ users, now }: UserOptions): Route {
  return route({
    ...WRITE,
    ...ONE_USER,
    method: 'PATCH',
    id: 'patchUser',
    summary: 'Change fields of a user',
    description:
      'The body is a JSON merge patch (RFC 7396): only the fields that it names change. null removes `metadata` or one of its strings.',
    body: {
      types: [JSON_TYPE, 'application/merge-patch+json'],
      schema: USER_PATCH,
      example: { metadata: { team: null, desk: '7' } },
    },
    answers: { 200: CHANGED, 204: CHANGED_UNSEEN },
    problems: ['invalid-url', 'not-found', ...BODY_PROBLEMS, ...WRITE_PROBLEMS],
    handler: async ({ request, parameters: { id = '' }, body, client }) => {
      const { change } = beginWrite(users, request, client);
      const patch = await body();
      return written(await change(id, (user) => patchUser(user, patch, now()) ?? 'keep'), client);
    },
  });
}

/** A body has no meaning here (RFC 9110, 9.3.5). The engine reads and drops it. */
function deleteOne({ users }: UserOptions): Route {
  return {
    ...WRITE,
    ...ONE_USER,
    method: 'DELETE',
    id: 'deleteUser',
    summary: 'Delete a user',
    headers: [...WRITE.headers, 'Prefer'],
    answers: {
      200: jsonAnswer('The user was deleted', REMOVED_USER, ['Cache-Control']),
      204: removedWithoutBody('The user was deleted'),
    },
    problems: ['invalid-url', 'not-found', ...WRITE_PROBLEMS],
    handler: async ({ request, parameters: { id = '' }, client }) => {
      const { change } = beginWrite(users, request, client);
      await change(id, () => null);
      return removed(request, id);
    },
  };
}

/** What a client may write. Throws AppError `forbidden` when the key may not write users, and `invalid-header`. */
function beginWrite(users: Users, request: Request, client: Client) {
  const writer = writerFor(users, client);
  const check = readPrecondition(request);
  /**
   * Changes a user of the part; null removes it. Where there is none, `create` makes it. Without `create`, AppError
   * `not-found` comes before any precondition: what fails without them fails the same way with them (RFC 9110, 13.2.1).
   */
  const change = async (
    id: string,
    next: (user: StoredUser) => StoredUser | null | 'keep',
    create?: () => StoredUser,
  ): Promise<RecordChange> => {
    if (!create && !isUserId(id)) throw noSuchUser(id);
    return users.records.change(id, (current) => {
      const user = current && fromRow(current);
      const make = user && writer.has(user) ? () => next(user) : create;
      if (!make) throw noSuchUser(id);
      check(current ? { etag: represent(current).etag } : 'missing');
      const after = make();
      return after === null || after === 'keep' ? after : toRow(writer.checked(after));
    });
  };
  return { ...writer, change };
}

function noSuchUser(id: string): AppError {
  return new AppError('not-found', `No user has the id ${quote(id)}.`);
}

/**
 * The user as it now is, or nothing for a key that may not read users. PUT has the tag although the server stores more
 * than was sent (RFC 9110, 9.3.4): Content-Location says that it is the tag of this body and not of the request's.
 */
function written({ before, after }: RecordChange, { key }: Client): Reply {
  if (!after) throw new TypeError('a write that removed the user has another answer');
  const url = `${PATH}/${fromRow(after)._id}`;
  const headers = before ? NOT_STORED : { ...NOT_STORED, location: url };
  if (key && !key.rights.actions.has('read')) return empty(before ? 204 : 201, headers);
  const { text, etag } = represent(after);
  return json(before ? 200 : 201, text, { ...headers, etag, 'content-location': url });
}

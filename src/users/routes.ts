import { AppError } from '../errors.ts';
import type { ProblemCode } from '../problems.ts';
import { prefers } from '../http/prefer.ts';
import { readPrecondition } from '../http/precondition.ts';
import { quote } from '../input/query.ts';
import { empty, json } from '../http/reply.ts';
import {
  BODY_PROBLEMS,
  JSON_TYPE,
  jsonAnswer,
  route,
  STORE_PROBLEMS,
  type Answer,
  type Route,
} from '../http/route.ts';
import type { PageLimits, PlanParameters } from '../pages/query.ts';
import { pageRoute } from '../pages/route.ts';
import type { Transcoder } from '../rows/rows.ts';
import { serializerOf } from '../rows/serializers.ts';
import { documentOf } from '../store/batch.ts';
import { makeBookmark } from '../store/bookmark.ts';
import type { RecordStore } from '../store/store.ts';
import { createUser, patchUser, replaceUser } from './change.ts';
import { isUserId, newUserId, noSuchUser } from './id.ts';
import { fromRow, represent, toRow } from './row.ts';
import { REMOVED_USER, USER, USER_BODY, USER_PATCH } from './user.ts';
import { changeExisting, NOT_CACHED, stateOf, written } from './write.ts';

export interface UserOptions {
  readonly users: RecordStore;
  readonly transcoder: Transcoder;
  readonly limits: PageLimits;
  /** Cache-Control of pages and users. */
  readonly cacheControl: string;
  /** The time in milliseconds since 1970. */
  readonly now: () => number;
}

const PATH = '/api/users';
const ONE = `${PATH}/{id}`;
const PATCH_TYPES = [JSON_TYPE, 'application/merge-patch+json'];

/** In order of id, which is the order of creation for ids made by the server. There is no filter. */
const BY_ID: PlanParameters = {
  collection: 'users',
  parameters: [],
  read: () => ({ sort: '_id', direction: 1 }),
  fields: () => undefined,
};

const ID = {
  id: {
    type: 'string',
    pattern: '^[A-Za-z0-9._~-]{1,64}$',
    not: { enum: ['.', '..'] },
    description: 'the id of the user',
    examples: ['ada'],
  },
} as const;

/** What all routes of users share, and what those that write share. */
const SHARED = { access: 'keyed', tag: 'Users', produces: [JSON_TYPE] } as const;
const WRITE = {
  ...SHARED,
  cost: 'write',
  right: 'users:write',
  headers: ['If-Match', 'If-None-Match'],
} as const;
const ONE_USER = { path: ONE, parameters: ID } as const;
const WRITE_PROBLEMS: readonly ProblemCode[] = [
  'invalid-header',
  'precondition-failed',
  'insufficient-storage',
  ...STORE_PROBLEMS,
];

const WRITTEN_HEADERS = ['ETag', 'Cache-Control', 'Content-Location'] as const;
const CHANGED: Answer = jsonAnswer('The changed user', USER, WRITTEN_HEADERS);
const CREATED: Answer = jsonAnswer('The created user', USER, [...WRITTEN_HEADERS, 'Location']);
const NEW_BODY = {
  types: [JSON_TYPE],
  schema: USER_BODY,
  example: { name: 'Ada', email: 'ada@example.org', metadata: { team: 'red' } },
};

const confirm = serializerOf(REMOVED_USER);

/** The routes of users. */
export function userRoutes(options: UserOptions) {
  return {
    list: listUsers(options),
    create: createNew(options),
    get: getOne(options),
    put: putOne(options),
    patch: patchOne(options),
    delete: deleteOne(options),
  } satisfies Record<string, Route>;
}

function listUsers(options: UserOptions): Route {
  return pageRoute(
    {
      path: PATH,
      id: 'listUsers',
      tag: 'Users',
      summary: 'List users',
      description:
        'Returns a page of users in order of id. Ids that the server makes grow with time, so their order is the order of creation.',
      row: { name: 'User', plural: 'users', schema: USER },
      example: {
        request: '/api/users',
        answer: { data: [], page: { limit: 50, hasMore: false, nextCursor: null } },
      },
    },
    { ...options, rows: options.users, plan: BY_ID },
  );
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
    handler: async ({ request, body }) => {
      const check = readPrecondition(request);
      const sent = await body();
      check({ etag: null }); // the target is the collection (RFC 9110, 13.1), which exists and has no strong tag
      const id = newUserId();
      const change = await users.change(id, (current) => {
        if (current) throw new Error(`the new id ${id} is taken`);
        return toRow(createUser(id, sent, now()));
      });
      return written(201, PATH, change);
    },
  });
}

function getOne({ users, cacheControl }: UserOptions): Route {
  return {
    ...SHARED,
    ...ONE_USER,
    method: 'GET',
    cost: 'page',
    right: 'read',
    id: 'getUser',
    summary: 'Get a user',
    headers: ['If-None-Match'],
    answers: {
      200: jsonAnswer('The user', USER, ['ETag', 'Cache-Control']),
      304: {
        description: 'The client already has this state of the user: its ETag is in If-None-Match',
        headers: ['ETag'],
      },
    },
    problems: ['invalid-url', 'not-found', 'invalid-header', 'precondition-failed', ...STORE_PROBLEMS],
    handler: async ({ request, parameters: { id = '' } }) => {
      const batch = isUserId(id) ? await users.get(makeBookmark({ _id: id }), request.signal) : null;
      if (!batch) throw noSuchUser(id);
      try {
        const { text, etag } = represent(fromRow(documentOf(batch)));
        request.notes.rows = 1;
        return json(200, text, { etag, 'cache-control': cacheControl });
      } finally {
        batch.release();
      }
    },
  };
}

/** Replaces a user, or creates one under this id. */
function putOne({ users, now }: UserOptions): Route {
  return route({
    ...WRITE,
    ...ONE_USER,
    method: 'PUT',
    id: 'putUser',
    summary: 'Replace a user, or create it under this id',
    description: 'The body is the whole user: fields that it omits are removed.',
    body: NEW_BODY,
    answers: { 200: CHANGED, 201: CREATED },
    problems: ['invalid-url', ...BODY_PROBLEMS, ...WRITE_PROBLEMS],
    handler: async ({ request, parameters: { id = '' }, body }) => {
      const check = readPrecondition(request);
      if (!isUserId(id))
        throw new AppError(
          'invalid-url',
          `The id of a user must be 1 to 64 characters of A-Z a-z 0-9 . _ ~ -, but not . or ..; got ${quote(id)}.`,
        );
      const sent = await body();
      const change = await users.change(id, (current) => {
        check(stateOf(current));
        return toRow(current ? replaceUser(fromRow(current), sent, now()) : createUser(id, sent, now()));
      });
      return written(change.before ? 200 : 201, PATH, change);
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
    body: { types: PATCH_TYPES, schema: USER_PATCH, example: { metadata: { team: null, desk: '7' } } },
    answers: { 200: CHANGED },
    problems: ['invalid-url', 'not-found', ...BODY_PROBLEMS, ...WRITE_PROBLEMS],
    handler: async ({ request, parameters: { id = '' }, body }) => {
      const check = readPrecondition(request);
      const patch = await body();
      const change = await changeExisting(users, id, check, (user) => {
        const patched = patchUser(user, patch, now());
        return patched ? toRow(patched) : 'keep';
      });
      return written(200, PATH, change);
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
      204: {
        description: 'The user was deleted; there is no body because of `Prefer: return=minimal`',
        headers: ['Cache-Control', 'Preference-Applied'],
      },
    },
    problems: ['invalid-url', 'not-found', ...WRITE_PROBLEMS],
    handler: async ({ request, parameters: { id = '' } }) => {
      const check = readPrecondition(request);
      await changeExisting(users, id, check, () => null);
      if (!prefers(request, 'return=minimal')) return json(200, confirm({ id, deleted: true }), NOT_CACHED);
      return empty(204, { ...NOT_CACHED, 'preference-applied': 'return=minimal' });
    },
  };
}

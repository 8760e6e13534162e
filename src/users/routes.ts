import { v7 } from 'uuid';
import { AppError } from '../errors.ts';
import type { ProblemCode } from '../problems.ts';
import { removed } from '../http/prefer.ts';
import { quote } from '../input/query.ts';
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
import { createUser, patchUser, replaceUser } from './change.ts';
import { ONE_USER, readingRoutes, SHARED, type ReadOptions } from './reading.ts';
import { toRow } from './row.ts';
import { allUsers, type UserPart } from './part.ts';
import { isUserId, PATH, REMOVED_USER, USER, USER_BODY, USER_PATCH } from './user.ts';
import { beginWrite, written } from './write.ts';

export type UserOptions = ReadOptions & {
  /** The time in milliseconds since 1970. */
  readonly now: () => number;
};

/** What the routes that write users have. */
type WriteOptions = Pick<UserOptions, 'users' | 'now'>;

const PATCH_TYPES = [JSON_TYPE, 'application/merge-patch+json'];

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

const WRITTEN_HEADERS = ['ETag', 'Cache-Control', 'Content-Location'] as const;
const CHANGED: Answer = jsonAnswer('The changed user', USER, WRITTEN_HEADERS);
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

/** The routes of users. `part`: the users that their documentation is about. */
export function userRoutes(options: UserOptions, part = allUsers(options.users)) {
  return {
    ...readingRoutes(options, part),
    create: createNew(options),
    put: putOne(options, part),
    patch: patchOne(options),
    delete: deleteOne(options),
  } satisfies Record<string, Route>;
}

function createNew({ users, now }: WriteOptions): Route {
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
      const { part, check } = beginWrite(users, request, client);
      const sent = part.complete(await body());
      check({ etag: null }); // the target is the collection (RFC 9110, 13.1), which exists and has no strong tag
      const id = v7(); // RFC 9562, 5.7: such ids are in the order of their creation
      const change = await users.change(id, (current) => {
        if (current) throw new Error(`the new id ${id} is taken`);
        return part.checked(toRow(createUser(id, sent, now())));
      });
      return written(change, client);
    },
  });
}

/**
 * Replaces a user, or creates one under this id. In a part it creates none: an id that is taken outside of the part must
 * be answered as one that is free.
 */
function putOne({ users, now }: WriteOptions, documented: UserPart): Route {
  return route({
    ...WRITE,
    ...ONE_USER,
    method: 'PUT',
    id: 'putUser',
    summary: documented.isWhole ? 'Replace a user, or create it under this id' : 'Replace a user',
    description: 'The body is the whole user: fields that it omits are removed.',
    body: NEW_BODY,
    answers: { 200: CHANGED, 204: CHANGED_UNSEEN, ...(documented.isWhole && { 201: CREATED }) },
    problems: [
      'invalid-url',
      ...(documented.isWhole ? [] : (['not-found'] as const)),
      ...BODY_PROBLEMS,
      ...WRITE_PROBLEMS,
    ],
    handler: async ({ request, parameters: { id = '' }, body, client }) => {
      const { part, change } = beginWrite(users, request, client);
      if (!isUserId(id))
        throw new AppError(
          'invalid-url',
          `The id of a user must be 1 to 64 characters of A-Z a-z 0-9 . _ ~ -, but not . or ..; got ${quote(id)}.`,
        );
      const sent = part.complete(await body());
      const create = part.isWhole ? () => createUser(id, sent, now()) : undefined;
      return written(await change(id, (user) => replaceUser(user, sent, now()), create), client);
    },
  });
}

function patchOne({ users, now }: WriteOptions): Route {
  return route({
    ...WRITE,
    ...ONE_USER,
    method: 'PATCH',
    id: 'patchUser',
    summary: 'Change fields of a user',
    description:
      'The body is a JSON merge patch (RFC 7396): only the fields that it names change. null removes `metadata` or one of its strings.',
    body: { types: PATCH_TYPES, schema: USER_PATCH, example: { metadata: { team: null, desk: '7' } } },
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
function deleteOne({ users }: WriteOptions): Route {
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

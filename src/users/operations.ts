import type { ProblemCode } from '../errors.ts';
import {
  jsonAnswer,
  PAGE_PROBLEMS,
  STORE_PROBLEMS,
  type Answer,
  type Operation,
} from '../openapi/operation.ts';
import { pageParameters, type PageLimits, type PlanParameters } from '../pages/query.ts';
import { Type } from '../schema.ts';
import { PAGE } from '../serialize/schemas.ts';
import { REMOVED_USER, USER, USER_BODY, USER_PATCH } from './user.ts';

export const USER_PAGE = Type.Object(
  { data: Type.Array(USER, { description: 'the users' }), page: PAGE },
  { additionalProperties: false, description: 'a page of users' },
);

const PATH = {
  id: {
    type: 'string',
    pattern: '^[A-Za-z0-9._~-]{1,64}$',
    not: { enum: ['.', '..'] },
    description: 'the id of the user',
    examples: ['ada'],
  },
} as const;
const BODY_EXAMPLE = { name: 'Ada', email: 'ada@example.org', metadata: { team: 'red' } };
const WRITE_PROBLEMS: readonly ProblemCode[] = [
  'invalid-header',
  'precondition-failed',
  'insufficient-storage',
  ...STORE_PROBLEMS,
];
const BODY_PROBLEMS: readonly ProblemCode[] = [
  'malformed-json',
  'body-too-large',
  'unsupported-media-type',
  'invalid-body',
];

const written = (description: string): Answer =>
  jsonAnswer(description, USER, ['ETag', 'Cache-Control', 'Content-Location']);
const created: Answer = jsonAnswer('The user, who is new', USER, [
  'ETag',
  'Cache-Control',
  'Content-Location',
  'Location',
]);

export function listUsers(limits: PageLimits, plan: PlanParameters): Operation {
  return {
    id: 'listUsers',
    tag: 'Users',
    summary: 'A page of users',
    description: 'In order of id, which is that of their creation where the server made the ids.',
    query: pageParameters(limits, plan, false),
    headers: ['If-None-Match'],
    answers: {
      200: {
        // A page of many megabytes goes out as a stream: its end is not known when its head is sent.
        sometimes: ['ETag', 'Link'],
        ...jsonAnswer('The page', USER_PAGE, ['Cache-Control'], {
          request: '/api/users',
          answer: { data: [], page: { limit: 50, hasMore: false, nextCursor: null } },
        }),
      },
      304: { description: 'The page is the one that If-None-Match names', headers: ['ETag'] },
    },
    problems: PAGE_PROBLEMS,
  };
}

export const CREATE_USER: Operation = {
  id: 'createUser',
  tag: 'Users',
  summary: 'A new user, under an id that the server makes',
  headers: ['If-Match', 'If-None-Match'],
  body: { schema: USER_BODY, example: BODY_EXAMPLE },
  answers: { 201: created },
  problems: [...BODY_PROBLEMS, ...WRITE_PROBLEMS],
};

export const GET_USER: Operation = {
  id: 'getUser',
  tag: 'Users',
  summary: 'One user',
  path: PATH,
  headers: ['If-None-Match'],
  answers: {
    200: jsonAnswer('The user', USER, ['ETag', 'Cache-Control']),
    304: { description: 'The user is in the state that If-None-Match names', headers: ['ETag'] },
  },
  problems: ['invalid-url', 'not-found', 'invalid-header', 'precondition-failed', ...STORE_PROBLEMS],
};

export const PUT_USER: Operation = {
  id: 'putUser',
  tag: 'Users',
  summary: 'Replaces a user, or creates one under this id',
  description: 'The whole user: what the body leaves out is gone afterwards.',
  path: PATH,
  headers: ['If-Match', 'If-None-Match'],
  body: { schema: USER_BODY, example: BODY_EXAMPLE },
  answers: { 200: written('The user as it now is'), 201: created },
  problems: ['invalid-url', ...BODY_PROBLEMS, ...WRITE_PROBLEMS],
};

export const PATCH_USER: Operation = {
  id: 'patchUser',
  tag: 'Users',
  summary: 'Changes parts of a user',
  description:
    'A merge patch (RFC 7396): only what the body names changes; null removes metadata or a text of it.',
  path: PATH,
  headers: ['If-Match', 'If-None-Match'],
  body: { schema: USER_PATCH, example: { metadata: { team: null, desk: '7' } } },
  answers: { 200: written('The user as it now is') },
  problems: ['invalid-url', 'not-found', ...BODY_PROBLEMS, ...WRITE_PROBLEMS],
};

export const DELETE_USER: Operation = {
  id: 'deleteUser',
  tag: 'Users',
  summary: 'Removes a user',
  path: PATH,
  headers: ['If-Match', 'If-None-Match', 'Prefer'],
  answers: {
    200: jsonAnswer('The user is gone', REMOVED_USER, ['Cache-Control']),
    204: {
      description: 'The user is gone; as `Prefer: return=minimal` asks, nothing more is said',
      headers: ['Cache-Control', 'Preference-Applied'],
    },
  },
  problems: ['invalid-url', 'not-found', ...WRITE_PROBLEMS],
};

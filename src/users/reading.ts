import type { Client } from '../access/admission.ts';
import { JSON_TYPE, type Route } from '../http/route.ts';
import { pageRoute } from '../resources/page/route.ts';
import type { RouteDocs } from '../resources/route-docs.ts';
import { makeBookmark } from '../store/bookmark.ts';
import type { Records } from '../store/records.ts';
import { BSON_RANK } from '../store/bson-types.ts';
import type { ReadId } from '../resources/row/id.ts';
import type { Plan } from '../store/store.ts';
import { rowRoute } from '../resources/row/row.ts';
import type { RouteOptions } from '../resources/row-source.ts';
import { usersFor, type UserPart } from './part.ts';
import { isUserId, PATH, SHOWN_USER, USER, USER_ID } from './user.ts';

/** What the routes that read users have. `users`: all of them. */
export type ReadOptions = Pick<RouteOptions, 'transcoder' | 'limits' | 'cacheControl'> & {
  readonly users: Records;
};

/** What all routes of users share, and what those of one user share. */
export const SHARED = { access: 'keyed', tag: 'Users', produces: [JSON_TYPE] } as const;
export const ONE_USER = { path: `${PATH}/{id}`, parameters: { id: USER_ID } } as const;

/** In order of id, which is the order of creation for ids made by the server. There is no filter. */
const BY_ID: Plan = { sort: '_id', direction: 1 };

const readId: ReadId = (id) =>
  Promise.resolve(
    isUserId(id) ? [{ id: makeBookmark({ _id: id }), rank: BSON_RANK.string, isPlace: true }] : [],
  );

/** GET of the users of a client, and of one. `part`: the users that the document describes. */
export function readingRoutes(options: ReadOptions, { showsAll }: UserPart) {
  const docs: RouteDocs<'list' | 'get'> = {
    ...{ path: PATH, tag: SHARED.tag, noun: { one: 'user', many: 'users' }, parameters: [] },
    row: {
      name: showsAll ? 'User' : 'ShownUser',
      ...{ plural: 'users', schema: showsAll ? USER : SHOWN_USER },
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
  const shared = { ...options, sourceFor: sourceIn(options) };
  return {
    list: pageRoute(docs, false, shared),
    get: {
      ...{ ...rowRoute(docs, shared), ...ONE_USER },
      summary: 'Get a user',
      description: 'The ETag of all fields is that of the answers to writes.',
    },
  } satisfies Record<string, Route>;
}

/** What the reads of a client read. */
function sourceIn({ users }: ReadOptions) {
  return (client: Pick<Client, 'key'>) => {
    const { rows, shown } = usersFor(users, client);
    const reads = { readId, readPlan: () => BY_ID, readFields: () => undefined };
    return { collection: 'users', rows, shown, ...reads };
  };
}

import type { Client } from '../access/admission.ts';
import { JSON_TYPE, type Route } from '../http/route.ts';
import type { PageLimits } from '../resources/page/parameters.ts';
import { pageRoute } from '../resources/page/route.ts';
import type { Transcoder } from '../rows/rows.ts';
import { makeBookmark } from '../store/bookmark.ts';
import type { Records } from '../store/records.ts';
import { BSON_RANK } from '../store/bson-types.ts';
import type { ReadId } from '../resources/row/id.ts';
import type { Plan } from '../store/store.ts';
import { rowRoute } from '../resources/row/row.ts';
import { usersFor, type UserPart } from './part.ts';
import { isUserId, PATH, SHOWN_USER, USER, USER_ID } from './user.ts';

/** What the routes that read users have. */
export interface ReadOptions {
  /** All users. */
  readonly users: Records;
  readonly transcoder: Transcoder;
  readonly limits: PageLimits;
  /** Cache-Control of pages and users. */
  readonly cacheControl: string;
}

/** What all routes of users share, and what those of one user share. */
export const SHARED = { access: 'keyed', tag: 'Users', produces: [JSON_TYPE] } as const;
export const ONE_USER = { path: `${PATH}/{id}`, parameters: { id: USER_ID } } as const;

/** In order of id, which is the order of creation for ids made by the server. There is no filter. */
const BY_ID: Plan = { sort: '_id', direction: 1 };

/** GET of the users of a client. `part`: those that the document describes. */
export function listUsers(options: ReadOptions, part: UserPart): Route {
  const row = part.showsAll
    ? { name: 'User', plural: 'users', schema: USER }
    : { name: 'ShownUser', plural: 'users', schema: SHOWN_USER };
  return pageRoute(
    {
      path: PATH,
      id: 'listUsers',
      tag: 'Users',
      summary: 'List users',
      description:
        'Returns a page of users in order of id. Ids that the server makes grow with time, so their order is the order of creation.',
      ...{ row, parameters: [], counts: false },
      example: {
        request: '/api/users',
        answer: { data: [], page: { limit: 50, hasMore: false, nextCursor: null } },
      },
    },
    { ...options, sourceFor: sourceIn(options) },
  );
}

const readId: ReadId = (id) =>
  Promise.resolve(
    isUserId(id) ? [{ id: makeBookmark({ _id: id }), rank: BSON_RANK.string, isPlace: true }] : [],
  );

/** GET of one user. `part`: see listUsers. */
export function getUser(options: ReadOptions, part: UserPart): Route {
  const docs = {
    ...{ path: PATH, id: 'getUser', tag: SHARED.tag, noun: { one: 'user', many: 'users' } },
    ...{ schema: part.showsAll ? USER : SHOWN_USER, parameters: [] },
  };
  return {
    ...rowRoute(docs, { ...options, sourceFor: sourceIn(options) }),
    ...ONE_USER,
    summary: 'Get a user',
    description: 'The ETag of all fields is that of the answers to writes.',
  };
}

/** What the reads of a client read. */
function sourceIn({ users }: ReadOptions) {
  return (client: Pick<Client, 'key'>) => {
    const { rows, shown } = usersFor(users, client);
    const reads = { readId, readPlan: () => BY_ID, readFields: () => undefined };
    return { collection: 'users', rows, shown, ...reads };
  };
}

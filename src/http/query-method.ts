import type { Reply, Request } from '../engine/edge.ts';
import type { Query } from '../input/query.ts';
import { BODY_PROBLEMS, type Route } from './route.ts';

/**
 * The longest URL in the Location of an answer, in characters. A page also has links, and the limit for a whole head is
 * 8,000 bytes.
 */
const LONGEST_LOCATION = 1000;

/**
 * The QUERY (RFC 10008) of what a GET route answers: the same parameters as a JSON object, for what is too long for a
 * URL. Everything else is as for GET. QUERY is safe, so the route must be one that orders nothing (`instead`).
 */
export function queryRoute(get: Omit<Route, 'instead'>, id: string): Route {
  const { answers } = get;
  return {
    ...get,
    method: 'QUERY',
    id,
    summary: `${get.summary}, with the parameters as JSON`,
    description: `${get.description ?? ''} The content has the names and values of the query string of GET, which the URL must not have.`,
    answers: {
      ...answers,
      ...(answers[200] && {
        200: { ...answers[200], sometimes: [...(answers[200].sometimes ?? []), 'Location'] },
      }),
    },
    problems: [...(get.problems ?? []), ...BODY_PROBLEMS],
  };
}

/** Adds the URL of the GET request that repeats a QUERY (RFC 10008, 2.4), unless it is too long. */
export function located({ method, path }: Request, query: Query, reply: Reply): Reply {
  if (method !== 'QUERY' || reply.status !== 200) return reply;
  const search = new URLSearchParams([...query]).toString();
  const location = search === '' ? path : `${path}?${search}`;
  return location.length > LONGEST_LOCATION ? reply : { ...reply, headers: { ...reply.headers, location } };
}

import { notModified, type Route } from '../http/route.ts';

/** What routes of files differ in. */
type FileRoute = Pick<Route, 'path' | 'id' | 'summary' | 'handler'> & Partial<Route>;

/**
 * A route of a file that needs no key. `description`: of its answer. `media`: the types of its content.
 */
export function fileRoute(description: string, media: readonly string[], route: FileRoute): Route {
  return {
    method: 'GET',
    access: 'open',
    cost: 'page',
    tag: 'Server',
    headers: ['If-None-Match'],
    answers: {
      200: {
        description,
        headers: ['ETag', 'Cache-Control'],
        content: Object.fromEntries(media.map((type) => [type, { schema: { type: 'string' } }])),
      },
      304: notModified('this content'),
    },
    problems: ['invalid-header', 'precondition-failed'],
    ...route,
  };
}

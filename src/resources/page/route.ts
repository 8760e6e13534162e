import type { ProblemCode } from '../../problems.ts';
import { JSON_TYPE, jsonAnswer, notModified, type Route } from '../../http/route.ts';
import { listOf, namedObject } from '../../schema.ts';
import { routeOf, type RouteDocs } from '../route-docs.ts';
import { pageHandler, type PageOptions } from './handler.ts';
import { PAGE } from './page.ts';
import { pageParameters } from './parameters.ts';

/** The problems that any page can answer with. */
const PAGE_PROBLEMS: readonly ProblemCode[] = [
  'conflicting-parameters',
  'offset-too-deep',
  'invalid-cursor',
  'cursor-mismatch',
  'invalid-header',
  'precondition-failed',
  'sort-value-too-long',
];

/** The GET route of a paged collection. `counts`: whether its rows can be counted. */
export function pageRoute(docs: RouteDocs<'list'>, counts: boolean, options: PageOptions): Route {
  const { row, list, parameters, examples } = docs;
  const page = namedObject(`${row.name}Page`, `a page of ${row.plural}`, {
    data: listOf(`the ${row.plural} of the page`, row.schema),
    page: PAGE,
  });
  return {
    ...{ ...routeOf(docs, 'list', PAGE_PROBLEMS), ...list },
    cost: 'page',
    right: 'read',
    query: pageParameters(options.limits, parameters, counts),
    headers: ['If-None-Match'],
    produces: [JSON_TYPE],
    answers: {
      200: {
        // A page of many megabytes is streamed, and its end is not known when its head is sent.
        sometimes: ['ETag', 'Link'],
        ...jsonAnswer('The page', page, ['Cache-Control'], examples.list),
      },
      304: notModified('this page'),
    },
    handler: pageHandler(options),
  };
}

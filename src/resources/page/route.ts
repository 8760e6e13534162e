import type { ProblemCode } from '../../problems.ts';
import type { Parameter } from '../../input/parameter.ts';
import { JSON_TYPE, jsonAnswer, STORE_PROBLEMS, type Content, type Route } from '../../http/route.ts';
import { listOf, namedObject, type TSchema } from '../../schema.ts';
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
  ...STORE_PROBLEMS,
];

/** How a paged collection describes itself. */
export interface PageRoute extends Pick<
  Route,
  'path' | 'id' | 'tag' | 'summary' | 'description' | 'isField'
> {
  /** The row's names and schema. The page is named after the row. */
  readonly row: { readonly name: string; readonly plural: string; readonly schema: TSchema };
  readonly example?: Content['example'] | undefined;
  /** The parameters that choose and order rows. */
  readonly parameters: readonly Parameter<unknown>[];
  /** Whether the rows can be counted. */
  readonly counts: boolean;
  /** Problems that reading the plan can meet. */
  readonly problems?: readonly ProblemCode[];
}

/** The GET route of a paged collection. */
export function pageRoute(
  { row, example, problems = [], parameters, counts, ...rest }: PageRoute,
  options: PageOptions,
): Route {
  const page = namedObject(`${row.name}Page`, `a page of ${row.plural}`, {
    data: listOf(`the ${row.plural} of the page`, row.schema),
    page: PAGE,
  });
  return {
    ...rest,
    method: 'GET',
    access: 'keyed',
    cost: 'page',
    right: 'read',
    query: pageParameters(options.limits, parameters, counts),
    headers: ['If-None-Match'],
    produces: [JSON_TYPE],
    answers: {
      200: {
        // A page of many megabytes is streamed, and its end is not known when its head is sent.
        sometimes: ['ETag', 'Link'],
        ...jsonAnswer('The page', page, ['Cache-Control'], example),
      },
      304: {
        description: 'The client already has this page: its ETag is in If-None-Match',
        headers: ['ETag'],
      },
    },
    problems: [...PAGE_PROBLEMS, ...problems],
    handler: pageHandler(options),
  };
}

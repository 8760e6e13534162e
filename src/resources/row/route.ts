import type { ProblemCode } from '../../problems.ts';
import type { Parameter } from '../../input/parameter.ts';
import { STORE_PROBLEMS, type Content, type Example, type Route } from '../../http/route.ts';
import type { TSchema } from '../../schema.ts';

/** What the routes of one collection have in common. */
export interface RowsDocs {
  /** `/items`. */
  readonly path: string;
  readonly tag: Route['tag'];
  /** What a row is called, in sentences. */
  readonly noun: { readonly one: string; readonly many: string };
  /** The schema of a row. */
  readonly schema: TSchema;
  /** The parameters that choose and order rows. */
  readonly parameters: readonly Parameter<unknown>[];
  /** Whether the query may have a name that is not listed: see Route. */
  readonly isField?: (name: string) => boolean;
  /** Problems that reading the plan can meet. */
  readonly problems?: readonly ProblemCode[];
}

/** One route of a collection. */
export interface RowRoute extends RowsDocs {
  readonly id: string;
  /** Examples on the bundled catalogue, by format. */
  readonly examples?: Readonly<Partial<Record<string, Example>>> | undefined;
  /** Examples of changes: as lines, as server-sent events, and of a stream that follows. */
  readonly changeExamples?: Readonly<Record<'lines' | 'events' | 'follow', Content['changing']>> | undefined;
}

/** What the routes behind the path of a collection have in common. `own`: the problems of the route itself. */
export function routeOf(
  { path, id, tag, isField, ...docs }: RowRoute,
  name: string,
  own: readonly ProblemCode[],
) {
  const problems = [...own, ...(docs.problems ?? []), ...STORE_PROBLEMS];
  const route = { method: 'GET', path: `${path}/${name}`, access: 'keyed', id, tag, problems } as const;
  return { ...route, ...(isField && { isField }) };
}

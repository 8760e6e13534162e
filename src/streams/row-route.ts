import type { ProblemCode } from '../problems.ts';
import type { Parameter } from '../input/parameter.ts';
import type { Content, Example, Route } from '../http/route.ts';
import type { TSchema } from '../schema.ts';

/** What the routes of one collection have in common. */
export interface RowsTold {
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
export interface RowRoute extends RowsTold {
  readonly id: string;
  /** Examples on the bundled catalogue. */
  readonly examples?:
    { readonly lines?: Example; readonly array?: Example; readonly table?: Example } | undefined;
  /** Examples of changes: as lines, as server-sent events, and of a stream that follows. */
  readonly changeExamples?: Readonly<Record<'lines' | 'events' | 'follow', Content['changing']>> | undefined;
}

/** The part of a route that lets its query have fields as parameters. */
export function fieldsOf({ isField }: Pick<RowsTold, 'isField'>): Pick<Route, 'isField'> {
  return { ...(isField && { isField }) };
}

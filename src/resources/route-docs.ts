import type { ProblemCode } from '../base/problems.ts';
import type { Parameter } from '../input/parameter.ts';
import { STORE_PROBLEMS, type Content, type Example, type Route } from '../http/route.ts';
import type { TSchema } from '../base/schema.ts';
import type { Transcoder } from '../rows/rows.ts';

type RouteName = 'list' | 'stream' | 'changes' | 'partitions' | 'values' | 'get';

/** The most that a client may ask for. */
export interface PageLimits {
  readonly maxLimit: number;
  readonly maxOffset: number;
}

export interface RouteOptions {
  readonly transcoder: Transcoder;
  readonly limits: PageLimits;
  /** Cache-Control of pages and single rows. */
  readonly cacheControl: string;
  /** Called when a stream stalls. The returned function is called when the stream goes on or ends. */
  readonly parked: () => () => void;
  /** A feed that has nothing to send sends a checkpoint after this time. Milliseconds. */
  readonly heartbeatMs: number;
  /** How many requests this process has begun so far. */
  readonly begun: () => number;
}

/** How a collection describes itself. `N`: the routes that it has. */
export interface RowsDocs<N extends RouteName = RouteName> {
  readonly tag: Route['tag'];
  /** What a row is called, in sentences. */
  readonly noun: { readonly one: string; readonly many: string };
  /** The names and the schema of a row. A page is named after the row. */
  readonly row: { readonly name: string; readonly plural: string; readonly schema: TSchema };
  /** The names of the operations. */
  readonly ids: Readonly<Record<N, string>>;
  readonly list: Pick<Route, 'summary' | 'description'>;
  /** Examples on the bundled catalogue. */
  readonly examples: {
    readonly list?: Content['example'];
    /** By format. */
    readonly stream?: Readonly<Partial<Record<string, Example>>>;
    readonly partitions?: Content['example'];
    readonly get?: Content['example'];
    /** Ids that exist there. */
    readonly ids?: readonly string[];
  };
}

/** What the routes of a collection are made of. */
export interface RouteDocs<N extends RouteName = RouteName> extends RowsDocs<N> {
  /** `/items`. */
  readonly path: string;
  /** The parameters that choose and order rows. */
  readonly parameters: readonly Parameter<unknown>[];
  /** Those of them that need no other order than that of ids. */
  readonly unordered?: readonly Parameter<unknown>[];
  /** Whether the query may have a name that is not listed: see Route. */
  readonly isField?: (name: string) => boolean;
  /** Problems that reading the plan can meet. */
  readonly problems?: readonly ProblemCode[];
}

/** What the routes that read rows have in common. `own`: the problems of the route itself. */
export function routeOf<N extends RouteName>(
  { path, ids, tag, isField, problems = [] }: RouteDocs<N>,
  name: N,
  own: readonly ProblemCode[],
) {
  return {
    ...({ method: 'GET', path: name === 'list' ? path : `${path}/${name}`, access: 'keyed' } as const),
    id: ids[name],
    tag,
    problems: [...own, ...problems, ...STORE_PROBLEMS],
    ...(isField && { isField }),
  };
}

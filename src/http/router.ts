import { decoded } from '../base/decoded.ts';
import { AppError } from '../base/errors.ts';
import { getOrMake } from '../base/get-or-make.ts';
import { mediaTypeNegotiator } from './negotiate.ts';
import { parseQuery, type Query } from '../input/query.ts';
import type { Request } from '../engine/edge.ts';
import type { Route } from './route.ts';
import { bodyCheck } from '../input/validate.ts';
import type { JsonBody } from '../input/body-json.ts';

/** A route with the functions that are compiled once from its declaration. */
export interface CompiledRoute {
  readonly route: Route;
  /** Throws the AppErrors of parseQuery. */
  readonly readQuery: (request: Request) => Query;
  /** Throws AppError `not-acceptable`. */
  readonly chooseType: (request: Request, query: Query) => string;
  /** null: the route has no body. */
  readonly checkBody: ((body: JsonBody) => unknown) | null;
}

/** The resource found under a path, and the segment that matched its `{name}`. */
export interface RouteMatch {
  readonly path: string;
  readonly resource: string | null;
  /** By method. GET also answers HEAD. */
  readonly methods: ReadonlyMap<string, CompiledRoute>;
  /** Not decoded yet. */
  readonly segment: { readonly name: string; readonly raw: string } | null;
}

export interface Router {
  /** Returns the resource that a request's path names; null when there is none. */
  find(request: Pick<Request, 'path'>): RouteMatch | null;
  /** The paths of pages of rows, each the first one of its resource. */
  readonly lists: readonly Pick<RouteMatch, 'path' | 'resource'>[];
  /** Whether a resource may have this name that is not known yet, because the store is away. Missing: none has. */
  readonly mayCome?: (name: string) => boolean;
}

/** Matches raw path bytes: `/items/%73tream` is the item with the id `stream`. Literal paths take precedence. */
export function createRouter(routes: readonly Route[]): Router {
  const literal = new Map<string, RouteMatch & Resource>();
  const withParameter = new Map<string, Resource & { readonly name: string }>();
  for (const route of routes) {
    const { method, path, resource = null } = route;
    const parameter = /^(.*\/)\{(\w+)\}(\/\w+)?$/.exec(path);
    const [, prefix = '', name = '', suffix = ''] = parameter ?? [];
    const methods = parameter
      ? getOrMake(withParameter, `${prefix}{}${suffix}`, () => ({ path, resource, name, methods: new Map() }))
          .methods
      : getOrMake(literal, path, () => ({ path, resource, methods: new Map(), segment: null })).methods;
    methods.set(
      method,
      getOrMake(compiled, route, () => compile(route)),
    );
  }
  const isBelow = (path: string) => literal.has(path.slice(0, path.lastIndexOf('/')));
  return {
    lists: [...literal.values()].filter(({ path, resource }) => resource !== null && !isBelow(path)),
    find(request) {
      const exact = literal.get(request.path);
      if (exact) return exact;
      for (const [prefix, raw, suffix] of splits(request.path)) {
        const found = withParameter.get(`${prefix}{}${suffix}`);
        if (!found || raw === '') continue;
        const { path, resource, methods, name } = found;
        return { path, resource, methods, segment: { name, raw } };
      }
      return null;
    },
  };
}

interface Resource {
  readonly path: string;
  readonly resource: string | null;
  readonly methods: Map<string, CompiledRoute>;
}

/** Each route is compiled once, also where a new router has it. */
const compiled = new WeakMap<Route, CompiledRoute>();

function compile(route: Route): CompiledRoute {
  const { query: parameters = [], isField } = route;
  const names = parameters.map(({ name }) => name);
  const acceptable = route.produces ? mediaTypeNegotiator(route.produces) : () => '';
  return {
    route,
    readQuery: (request) => parseQuery(request.query, names, isField),
    chooseType: (request, query) => route.typeAsked?.(query) ?? acceptable(request),
    checkBody: route.body ? bodyCheck(route.body.schema) : null,
  };
}

/** The decoded parameters of a path. Throws AppError `invalid-url`. */
export function parametersOf({ segment }: RouteMatch): Readonly<Record<string, string>> {
  return segment ? { [segment.name]: decodeSegment(segment.raw) } : {};
}

/** The ways to read a path as one with a parameter: in its last segment, or in the one before. */
function splits(path: string): readonly (readonly [prefix: string, segment: string, suffix: string])[] {
  const last = path.lastIndexOf('/');
  const before = path.lastIndexOf('/', last - 1);
  const split = (slash: number, end: number) =>
    [path.slice(0, slash + 1), path.slice(slash + 1, end), path.slice(end)] as const;
  return last > 0 && before >= 0
    ? [split(last, path.length), split(before, last)]
    : [split(last, path.length)];
}

function decodeSegment(segment: string): string {
  const text = /[^\x21-\x7e]/.test(segment) ? undefined : decoded(segment);
  if (text === undefined) throw malformed(segment);
  return text;
}

function malformed(segment: string): AppError {
  return new AppError('invalid-url', `${JSON.stringify(segment)} in the path is not percent-encoded UTF-8.`);
}

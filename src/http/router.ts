import { AppError } from '../errors.ts';
import { acceptHeader } from './body-json.ts';
import type { Operation } from '../openapi/operation.ts';
import type { Reply, Request } from './edge.ts';
import { empty } from './reply.ts';

export type Parameters = Readonly<Record<string, string>>;
export type Handler = (request: Request, parameters: Parameters) => Reply | Promise<Reply>;

/** One operation: `path` is a literal path of which the last segment, or the one before, may be `{name}`, which takes any non-empty segment. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly handler: Handler;
  /** What /openapi.json says of it. */
  readonly doc: Operation;
  /** Media types that the request's body may have; OPTIONS names them. */
  readonly accepts?: readonly string[];
}

type Methods = Map<string, Route>;

export interface Router {
  /** Answers by the route of the request. AppError `not-found` or `method-not-allowed` with Allow. */
  readonly answer: (request: Request) => Reply | Promise<Reply>;
  /** The `path` of the resource that a request is for; null when there is none. */
  readonly resource: (request: Request) => string | null;
}

/**
 * Matches raw path bytes: `/items/stream` is the stream, `/items/%73tream` the item with that id. Literal paths come
 * before parameters. HEAD is answered wherever GET is, OPTIONS everywhere.
 */
export function createRouter(routes: readonly Route[]): Router {
  const literal = new Map<string, Methods>();
  const withParameter = new Map<string, { name: string; methods: Methods }>();
  for (const route of routes) {
    const { method, path } = route;
    const parameter = /^(.*\/)\{(\w+)\}(\/\w+)?$/.exec(path);
    if (!parameter) entry(literal, path, () => new Map()).set(method, route);
    else {
      const [, prefix = '', name = '', suffix = ''] = parameter;
      const key = `${prefix}{}${suffix}`;
      entry(withParameter, key, () => ({ name, methods: new Map() })).methods.set(method, route);
    }
  }
  const find = (request: Request) => {
    const exact = literal.get(request.path);
    if (exact) return { methods: exact, name: null, segment: '' };
    for (const [prefix, segment, suffix] of splits(request.path)) {
      const found = withParameter.get(`${prefix}{}${suffix}`);
      if (found && segment !== '') return { ...found, segment };
    }
    return null;
  };
  return {
    resource: (request) => {
      const found = find(request);
      return found && firstOf(found.methods).path;
    },
    answer: (request) => {
      const found = find(request);
      if (!found) throw new AppError('not-found', `No resource has the path ${request.path}.`);
      const { methods, name, segment } = found;
      return dispatch(methods, request, name === null ? {} : { [name]: decodeSegment(segment) });
    },
  };
}

/** The ways to see a path as one with a parameter: in its last segment, or in the one before. */
function splits(path: string): readonly (readonly [prefix: string, segment: string, suffix: string])[] {
  const last = path.lastIndexOf('/');
  const before = path.lastIndexOf('/', last - 1);
  const split = (slash: number, end: number) =>
    [path.slice(0, slash + 1), path.slice(slash + 1, end), path.slice(end)] as const;
  return last > 0 && before >= 0
    ? [split(last, path.length), split(before, last)]
    : [split(last, path.length)];
}

function dispatch(methods: Methods, request: Request, parameters: Parameters): Reply | Promise<Reply> {
  const route = methods.get(request.method === 'HEAD' ? 'GET' : request.method);
  request.notes.route = (route ?? firstOf(methods)).path;
  if (route) return route.handler(request, parameters);
  const allow = [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
  if (request.method === 'OPTIONS') return empty(204, { allow, ...bodyHeaders(methods) });
  throw new AppError('method-not-allowed', `${request.method} is not one of ${allow}.`, {
    headers: { allow },
  });
}

/** All methods of a resource have its path. */
function firstOf(methods: Methods): Route {
  const [first] = methods.values();
  if (!first) throw new TypeError('a resource without a method');
  return first;
}

/** Accept-Post and Accept-Patch; for the other methods no such header is defined. */
function bodyHeaders(methods: Methods): Record<string, string> {
  const { POST: post, PATCH: patch } = Object.fromEntries(methods);
  return {
    ...(post?.accepts && acceptHeader('POST', post.accepts)),
    ...(patch?.accepts && acceptHeader('PATCH', patch.accepts)),
  };
}

function decodeSegment(segment: string): string {
  if (/[^\x21-\x7e]/.test(segment)) throw malformed(segment);
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    if (error instanceof URIError) throw malformed(segment);
    throw error;
  }
}

function malformed(segment: string): AppError {
  return new AppError('invalid-url', `${JSON.stringify(segment)} in the path is not percent-encoded UTF-8.`);
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

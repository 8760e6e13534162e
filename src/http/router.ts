import { AppError } from '../errors.ts';
import type { Reply, Request } from './edge.ts';
import { empty } from './reply.ts';

export type Parameters = Readonly<Record<string, string>>;
export type Handler = (request: Request, parameters: Parameters) => Reply | Promise<Reply>;

/** One operation: `path` is a literal path whose last segment may be one `{name}`, which takes any non-empty segment. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly handler: Handler;
}

type Methods = Map<string, Handler>;

/**
 * Matches raw path bytes: `/items/stream` is the stream, `/items/%73tream` the item with that id. Literal paths come
 * before parameters. HEAD is answered wherever GET is, OPTIONS everywhere.
 * AppError `not-found` or `method-not-allowed` with Allow.
 */
export function createRouter(routes: readonly Route[]): (request: Request) => Reply | Promise<Reply> {
  const literal = new Map<string, Methods>();
  const withParameter = new Map<string, { name: string; methods: Methods }>();
  for (const { method, path, handler } of routes) {
    const parameter = /^(.*\/)\{(\w+)\}$/.exec(path);
    if (!parameter) entry(literal, path, () => new Map()).set(method, handler);
    else {
      const [, prefix = '', name = ''] = parameter;
      entry(withParameter, prefix, () => ({ name, methods: new Map() })).methods.set(method, handler);
    }
  }
  return (request) => {
    const exact = literal.get(request.path);
    if (exact) return dispatch(exact, request, {});
    const slash = request.path.lastIndexOf('/') + 1;
    const found = withParameter.get(request.path.slice(0, slash));
    if (!found || slash === request.path.length) {
      throw new AppError('not-found', `No resource has the path ${request.path}.`);
    }
    return dispatch(found.methods, request, { [found.name]: decodeSegment(request.path.slice(slash)) });
  };
}

function dispatch(methods: Methods, request: Request, parameters: Parameters): Reply | Promise<Reply> {
  const handler = methods.get(request.method === 'HEAD' ? 'GET' : request.method);
  if (handler) return handler(request, parameters);
  const allow = [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
  if (request.method === 'OPTIONS') return empty(204, { allow });
  throw new AppError('method-not-allowed', `${request.method} is not one of ${allow}.`, {
    headers: { allow },
  });
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

import { AppError, storeUnavailable } from '../base/errors.ts';
import { acceptHeader, readJsonBody } from '../input/body-json.ts';
import type { Reply, Request } from '../engine/edge.ts';
import { conditional } from './precondition.ts';
import { ranged } from './range.ts';
import { aroundWrites, empty } from './reply.ts';
import { isPublicName, keyEnded, mayKnow, refusalOf, revocable } from './permit.ts';
import { isPreflight, type Admissions, type Client } from '../access/admission.ts';
import type { Input, Route } from './route.ts';
import { parametersOf, type CompiledRoute, type RouteMatch, type Router } from './router.ts';

interface Surroundings {
  readonly router: Router;
  readonly admissions: Pick<Admissions, 'acquire' | 'idle' | 'mayGoOn'>;
  /** The headers of a reply as sent in the negotiated coding. A 304 repeats them. */
  readonly coded: (reply: Reply) => Reply['headers'];
}

/** Throws AppError `not-found`, `method-not-allowed` with Allow, and those of parsing, negotiation and the handler. */
export async function dispatch(
  request: Request,
  any: RouteMatch | null,
  client: Client,
  { router, admissions, coded }: Surroundings,
): Promise<Reply> {
  if (isSecretPreflight(request, any, client)) return empty(204, { allow: ROWS_ALLOW });
  const found = any && mayKnow(client, any.resource) ? any : null;
  if (any && !found) request.notes.refusal = 'not-found';
  if (!found) throw notFound(request, client, router);
  const compiled = routeOf(found, request);
  if (!compiled) return otherMethod(request, found);
  const { route } = compiled;
  assertMay(client, route);
  const idle = async (until: () => Promise<void>): Promise<void> => {
    await admissions.idle(client, until);
    if (!admissions.mayGoOn(client, route)) throw keyEnded();
  };
  const input = readInput(request, found, compiled, client, idle);
  const needed = route.needs?.(input.query).map((need) => ({ ...route, ...need })) ?? [route];
  for (const one of needed) assertMay(client, one);
  if (route.instead) {
    const early = await route.instead(input);
    if (early) return early;
  }
  const finish = (reply: Reply) => {
    const whole = ranged(request, conditional(request, reply, coded));
    return client.key === null
      ? whole
      : revocable(whole, () => needed.every((one) => admissions.mayGoOn(client, one)));
  };
  if (route.cost === 'stream' || route.cost === 'download')
    return withSlot(admissions.acquire(client), async () => finish(await route.handler(input)));
  return finish(await route.handler(input));
}

/** The most resources that an error lists. */
const MOST_LISTED = 20;

/**
 * It is the same for a path that does not exist and for one that the key may not know, and lists the resources that the
 * client may. While the store is away, a path that may exist is 503.
 */
function notFound({ path, notes: { mount } }: Request, client: Client, router: Router): AppError {
  let end = path.length;
  while (path.endsWith('/', end)) end--;
  const [, first = ''] = path.split('/');
  if (mayKnow(client, first) && router.mayCome?.(first) === true)
    return storeUnavailable(new Error('the collections of a pattern are not known yet'));
  const meant = end < path.length ? router.find({ path: path.slice(0, end) }) : null;
  const slash =
    meant && mayKnow(client, meant.resource)
      ? ` Leave out the slash at its end: ${mount}${path.slice(0, end)} is there.`
      : '';
  const mayList = client.key !== null || !client.hasKey;
  const known = router.lists
    .filter(({ resource }) => mayList && mayKnow(client, resource))
    .map((one) => mount + one.path);
  const shown = known.length > MOST_LISTED ? [...known.slice(0, MOST_LISTED), 'others'] : known;
  const served = shown.length === 0 ? '' : ` The resources are ${shown.join(', ')}.`;
  return new AppError(
    'not-found',
    `No resource has the path ${mount}${path}.${slash}${served} GET ${mount}/resources says what can be asked of them, and ${mount}/docs shows every path.`,
  );
}

function assertMay(client: Client, route: Route): void {
  const refused = refusalOf(client, route);
  if (refused) throw refused;
}

/** The methods of a declared resource. */
const ROWS_ALLOW = 'GET, HEAD, OPTIONS';

/** A preflight has no key. With keys it must not show which resources there are: any declared path answers alike. */
function isSecretPreflight(request: Request, found: RouteMatch | null, { hasKey }: Client): boolean {
  const isStatic = found !== null && isPublicName(found);
  return hasKey && !isStatic && isPreflight(request);
}

/** The route that answers a request to a resource; undefined when the resource does not take the method. */
export function routeOf({ methods }: RouteMatch, { method }: Request): CompiledRoute | undefined {
  return methods.get(method === 'HEAD' ? 'GET' : method);
}

function readInput(
  request: Request,
  found: RouteMatch,
  compiled: CompiledRoute,
  client: Client,
  idle: Input['idle'],
): Input {
  const { route, readQuery, chooseType, checkBody } = compiled;
  const parameters = parametersOf(found);
  const query = readQuery(request);
  const json = async () => {
    if (!route.body) throw undeclared(route);
    return readJsonBody(request, route.body.types);
  };
  return {
    request,
    parameters,
    query,
    type: chooseType(request, query),
    client,
    idle,
    json,
    body: async () => {
      if (!checkBody) throw undeclared(route);
      return checkBody(await json());
    },
  };
}

function undeclared({ method, path }: Route): TypeError {
  return new TypeError(`${method} ${path} declares no body`);
}

/**
 * Holds a stream slot until the answer ends or its client is gone. An answer of known length gives it back before its
 * last byte: with that byte the client can send the next request, while the file is still being closed here.
 */
async function withSlot(release: () => void, answer: () => Promise<Reply>): Promise<Reply> {
  let reply: Reply;
  try {
    reply = await answer();
  } catch (error) {
    release();
    throw error;
  }
  const { body } = reply;
  if (body.kind !== 'stream') {
    release();
    return reply;
  }
  const run: typeof body.run = async (sink) => {
    // A client that is gone frees its slot now, not when its work in progress has ended.
    if (sink.signal.aborted) release();
    else sink.signal.addEventListener('abort', release, { once: true });
    try {
      await body.run(sink);
    } finally {
      sink.signal.removeEventListener('abort', release);
      release();
    }
  };
  const held = { ...reply, body: { ...body, run } };
  let left = body.length;
  if (left === undefined) return held;
  return aroundWrites(held, (write, bytes) => {
    left = (left ?? 0) - bytes;
    if (left <= 0) release();
    return write();
  });
}

function otherMethod(request: Request, { methods }: RouteMatch): Reply {
  const allow = [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
  if (request.method === 'OPTIONS') return empty(204, { allow, ...bodyHeaders(methods) });
  throw new AppError(
    'method-not-allowed',
    `The resource does not support ${request.method}. It supports ${allow}.`,
    {
      headers: { allow },
    },
  );
}

/** Accept-Post and Accept-Patch. No such header is defined for the other methods. */
function bodyHeaders(methods: RouteMatch['methods']): Record<string, string> {
  const typesOf = (method: string) => methods.get(method)?.route.body?.types;
  const post = typesOf('POST');
  const patch = typesOf('PATCH');
  return {
    ...(post && acceptHeader('POST', post)),
    ...(patch && acceptHeader('PATCH', patch)),
  };
}

import type { Reply, Request } from '../engine/edge.ts';

/** How long a browser may cache the answer to a preflight. Seconds; Chromium accepts at most two hours. */
const PREFLIGHT_SECONDS = 7200;

/** The headers that a script may read beside the few that every script may read. */
const EXPOSED =
  'Accept-Query, Estimated-Rows, ETag, Filtered-By-Key, Link, Location, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, Snapshot-At, X-Request-Id';

const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+(\s*,\s*[\w!#$%&'*+.^`|~-]+)*$/;

/**
 * Adds the headers that let scripts of other origins read an answer (Fetch standard, CORS protocol). Credentials are
 * not allowed: keys are sent in Authorization, which a script sets itself.
 */
export type Cors = (request: Request, reply: Reply) => Reply;

/** `origins`: `*`, or origins separated by commas. undefined turns CORS off. */
export function createCors(origins: string | undefined): Cors {
  if (origins === undefined) return (_request, reply) => reply;
  const any = origins.trim() === '*';
  const allowed = new Set(origins.split(',').map((origin) => origin.trim()));
  return (request, reply) => {
    const vary = any ? {} : { vary: [reply.headers.vary, 'Origin'].filter(Boolean).join(', ') };
    const { origin } = request.headers;
    if (origin === undefined || !(any || allowed.has(origin))) {
      return { ...reply, headers: { ...reply.headers, ...vary } };
    }
    const preflight = request.method === 'OPTIONS' && reply.status === 204;
    return {
      ...reply,
      headers: {
        ...reply.headers,
        ...vary,
        'access-control-allow-origin': any ? '*' : origin,
        ...(preflight ? preflightHeaders(request, reply) : { 'access-control-expose-headers': EXPOSED }),
      },
    };
  };
}

function preflightHeaders(request: Request, reply: Reply): Record<string, string> {
  // Every header may be sent, because those that matter are checked where they are read. Only names are copied, so
  // that nothing else is reflected.
  const asked = request.headers['access-control-request-headers'];
  const names = asked !== undefined && HEADER_NAMES.test(asked) ? asked : undefined;
  return {
    'access-control-allow-methods': reply.headers.allow ?? '',
    ...(names !== undefined && { 'access-control-allow-headers': names }),
    'access-control-max-age': String(PREFLIGHT_SECONDS),
  };
}

import type { Reply, Request } from '../engine/edge.ts';
import { LIMIT_HEADERS, RESPONSE_HEADERS } from './header-docs.ts';

/** How long a browser may cache the answer to a preflight. Seconds; Chromium accepts at most two hours. */
const PREFLIGHT_SECONDS = 7200;

/** The headers that a script may read beside the few that every script may read (Fetch standard, 3.2.2). */
const EXPOSED = [
  ...Object.keys(RESPONSE_HEADERS),
  ...Object.keys(LIMIT_HEADERS),
  ...['Filtered-By-Key', 'Snapshot-At', 'WWW-Authenticate', 'X-Request-Id'],
]
  .filter((name) => name !== 'Cache-Control')
  .sort()
  .join(', ');

/** Every header may be sent, because those that matter are checked where they are read. `*` does not mean this one. */
const ALLOWED_HEADERS = '*, Authorization';

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
        ...(preflight ? preflightHeaders(reply) : { 'access-control-expose-headers': EXPOSED }),
      },
    };
  };
}

function preflightHeaders(reply: Reply): Record<string, string> {
  return {
    'access-control-allow-methods': reply.headers.allow ?? '',
    'access-control-allow-headers': ALLOWED_HEADERS,
    'access-control-max-age': String(PREFLIGHT_SECONDS),
  };
}

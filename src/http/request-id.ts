import { randomUUID } from 'node:crypto';
import type { Request } from '../engine/edge.ts';

const known = new WeakMap<Request, string>();

/** Returns a request's id: the client's own when it is safe in a header and a log line, otherwise a generated one. */
export function requestIdOf(request: Request): string {
  const given = request.headers['x-request-id'];
  if (given !== undefined && /^[\w.-]{1,128}$/.test(given)) return given;
  let id = known.get(request);
  if (id === undefined) known.set(request, (id = randomUUID()));
  return id;
}

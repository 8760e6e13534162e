import { randomUUID } from 'node:crypto';
import type { Request } from '../engine/edge.ts';

/** Returns a request's id: the client's own when it is safe in a header and a log line, otherwise a generated one. */
export function requestIdOf(request: Request): string {
  const { notes, headers } = request;
  const given = headers['x-request-id'];
  if (notes.id === '') notes.id = given !== undefined && /^[\w.-]{1,128}$/.test(given) ? given : randomUUID();
  return notes.id;
}

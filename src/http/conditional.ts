import type { Reply, Request } from './edge.ts';
import { checkIfMatch, opaque } from './precondition.ts';

/**
 * What the conditions of a GET or HEAD make of its answer, in the order of RFC 9110, 13.2.2: AppError
 * `precondition-failed` when If-Match does not name its ETag (strong comparison, so never a weak one), 304 when
 * If-None-Match does (weak comparison). Tags are those of the content, whatever its coding. Answers without one have no conditions.
 */
export function conditional(request: Request, reply: Reply): Reply {
  const { etag } = reply.headers;
  const reading = request.method === 'GET' || request.method === 'HEAD';
  if (!reading || reply.status !== 200 || etag === undefined) return reply;
  checkIfMatch(request, etag);
  const asked = request.headers['if-none-match'];
  if (asked === undefined) return reply;
  const tags = asked.match(/\*|"[^"]*"/g) ?? [];
  const same = tags.some((tag) => tag === '*' || opaque(tag) === opaque(etag));
  if (!same) return reply;
  const headers = Object.entries(reply.headers).filter(([name]) => name !== 'content-type');
  return { ...reply, status: 304, headers: Object.fromEntries(headers), body: { kind: 'none' } };
}

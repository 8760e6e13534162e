import type { Reply, Request } from '../engine/edge.ts';
import { checkIfMatch, isNoneMatched } from './precondition.ts';

/** What a 304 does not repeat: its reader has the body that these describe. */
const ABOUT_THE_BODY: ReadonlySet<string> = new Set([
  'accept-ranges',
  'content-disposition',
  'content-encoding',
  'content-type',
  'repr-digest',
]);

/**
 * What the conditions of a GET or HEAD make of its answer, in the order of RFC 9110, 13.2.2: AppError
 * `precondition-failed` when If-Match does not name its ETag (strong comparison, so never a weak one), 304 when
 * If-None-Match does (weak comparison), `invalid-header` when one of them is malformed. Tags are those of the content,
 * whatever its coding. Answers without one have no conditions. `headers` are those with which the 200 would travel, and the
 * 304 repeats them (15.4.5).
 */
export function conditional(request: Request, reply: Reply, headers: Reply['headers']): Reply {
  const { etag } = reply.headers;
  const reading = request.method === 'GET' || request.method === 'HEAD';
  if (!reading || reply.status !== 200 || etag === undefined) return reply;
  checkIfMatch(request, etag);
  if (!isNoneMatched(request, etag)) return reply;
  const repeated = Object.entries(headers).filter(([name]) => !ABOUT_THE_BODY.has(name));
  return { ...reply, status: 304, headers: Object.fromEntries(repeated), body: { kind: 'none' } };
}

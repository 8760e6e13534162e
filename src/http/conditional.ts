import type { Reply, Request } from '../engine/edge.ts';
import { checkIfMatch, isNoneMatched } from './precondition.ts';

/** Headers that a 304 does not repeat: its client already has the body that they describe. */
const ABOUT_THE_BODY: ReadonlySet<string> = new Set([
  'accept-ranges',
  'content-disposition',
  'content-encoding',
  'content-type',
  'repr-digest',
]);

const READING: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * Applies the conditions of a GET or HEAD to its reply, in the order of RFC 9110, 13.2.2.
 * Throws AppError `precondition-failed` when If-Match does not name the reply's ETag (strong comparison, so a weak tag never
 * matches). Returns a 304 when If-None-Match names it (weak comparison). Throws AppError `invalid-header` when one of
 * them is malformed. Tags are those of the content, whatever its coding. A reply without a tag has no conditions.
 * `headersSent` returns the headers of the 200 as sent; the 304 repeats them (15.4.5).
 */
export function conditional(
  request: Request,
  reply: Reply,
  headersSent: (reply: Reply) => Reply['headers'],
): Reply {
  const { etag } = reply.headers;
  if (!READING.has(request.method) || reply.status !== 200 || etag === undefined) return reply;
  checkIfMatch(request, etag);
  if (!isNoneMatched(request, etag)) return reply;
  const repeated = Object.entries(headersSent(reply)).filter(([name]) => !ABOUT_THE_BODY.has(name));
  return { ...reply, status: 304, headers: Object.fromEntries(repeated), body: { kind: 'none' } };
}

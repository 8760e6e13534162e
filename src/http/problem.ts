import { AppError, PROBLEMS } from '../errors.ts';
import { serializers } from '../serialize/serializers.ts';
import type { Reply, Request } from './edge.ts';
import { json } from './reply.ts';

/**
 * The answer to an error (RFC 9457). What is not an AppError is our own mistake: `internal`, which tells the client
 * nothing but the request id to quote.
 */
export function problem(error: unknown, request: Request, requestId: string): Reply {
  const known =
    error instanceof AppError ? error : new AppError('internal', `Quote the request id ${requestId}.`);
  const text = serializers.problem({
    type: `/problems/${known.code}`,
    title: PROBLEMS[known.code].title,
    status: known.status,
    detail: known.message,
    instance: request.path,
    code: known.code,
    requestId,
    ...(known.parameter !== undefined && { parameter: known.parameter }),
    ...(known.errors !== undefined && { errors: known.errors }),
  });
  return json(
    known.status,
    text,
    { ...known.headers, 'cache-control': 'no-store' },
    'application/problem+json',
  );
}

import { AppError, PROBLEM, type ProblemDocument } from '../base/errors.ts';
import { PROBLEMS } from '../base/problems.ts';
import { serializerOf } from '../rows/serializers.ts';
import type { Reply, Request } from '../engine/edge.ts';
import { json } from './reply.ts';
import { requestIdOf } from './request-id.ts';

const serialize = serializerOf(PROBLEM);

/** Returns the reply to an error (RFC 9457). */
export function problem(error: unknown, request: Request): Reply {
  const known = error instanceof AppError ? error : null;
  const document = problemDocument(error, request);
  return json(
    document.status,
    serialize(document),
    { ...known?.headers, 'cache-control': 'no-store' },
    'application/problem+json',
  );
}

/** An error that is not an AppError is our own mistake: `internal`, with nothing but the request id to quote. */
export function problemDocument(error: unknown, request: Request): ProblemDocument {
  const requestId = requestIdOf(request);
  const { mount } = request.notes;
  const known =
    error instanceof AppError
      ? error
      : new AppError('internal', `The server has logged the cause under the request id ${requestId}.`);
  return {
    type: `${mount}/problems/${known.code}`,
    title: PROBLEMS[known.code].title,
    status: known.status,
    detail: known.message,
    instance: mount + request.path,
    code: known.code,
    requestId,
    ...(known.parameter !== undefined && { parameter: known.parameter }),
    ...(known.errors !== undefined && { errors: [...known.errors] }),
  };
}

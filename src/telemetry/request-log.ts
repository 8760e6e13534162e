import { AppError } from '../base/errors.ts';
import type { Ending, Notes } from '../engine/edge.ts';
import { ClientGoneError, CutByOperatorError, StallError, StoppedError } from '../engine/stall-timer.ts';
import { clipped } from '../terminal/text.ts';
import { requestIdOf } from '../http/request-id.ts';
import type { OnFinished } from '../http/respond.ts';

/**
 * `client`: it closed the connection. `stalled`: it took no byte for too long. `key`: its key has ended, or has lost the
 * right. `operator`: an operator cut it. `store`: the store did not answer. `stop`: the server stopped. `fault`: the
 * server itself failed.
 */
type End = 'whole' | 'client' | 'stalled' | 'key' | 'operator' | 'store' | 'stop' | 'fault';

export function endOf(cut: Ending['cut']): End {
  if (cut === null) return 'whole';
  const { reason } = cut;
  if (reason instanceof ClientGoneError) return 'client';
  if (reason instanceof StallError) return 'stalled';
  if (reason instanceof StoppedError) return 'stop';
  if (reason instanceof CutByOperatorError) return 'operator';
  if (!(reason instanceof AppError)) return 'fault';
  return reason.code === 'forbidden' ? 'key' : 'store';
}

type Level = 'debug' | 'info' | 'warn' | 'error';

type RequestLogger = Record<Level, (details: object, message: string) => void> & {
  isLevelEnabled(level: string): boolean;
};

const LONGEST_PATH = 256;
/** W3C Trace Context, 3.2: version, trace, parent and flags. */
export const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Logs a line for every request, without its query and headers but X-Request-Id and traceparent, in harmless form. */
export function requestLog(log: RequestLogger): OnFinished {
  return (request, { status, bytes, cut }, ms) => {
    const { notes, method, path, headers } = request;
    const end = endOf(cut);
    const level = levelOf(notes, end);
    if (!log.isLevelEnabled(level)) return;
    const { traceparent } = headers;
    const err = cut && (end === 'store' || end === 'fault') ? cut.reason : notes.failure;
    const line = {
      requestId: requestIdOf(request),
      method,
      route: notes.route,
      path: clipped(path, LONGEST_PATH),
      status,
      bytes,
      rows: bytes > 0 ? notes.rows : 0, // a 304 or HEAD also reads rows
      ms: Math.round(ms * 1000) / 1000,
      client: notes.client,
      end,
      traceparent: traceparent !== undefined && TRACEPARENT.test(traceparent) ? traceparent : undefined,
      err: level === 'warn' || level === 'error' ? err : undefined,
    };
    log[level](line, 'request');
  };
}

/** The level of a request's line. No other place decides it. */
function levelOf({ failure, cost }: Notes, end: End): Level {
  if (end === 'fault') return 'error';
  if (end === 'store') return 'warn';
  if (end !== 'whole') return 'info';
  if (failure === null) return cost === 'watch' ? 'debug' : 'info'; // machines ask every few seconds
  if (!(failure instanceof AppError)) return 'error';
  return failure.code === 'overloaded' ? 'info' : 'warn'; // early refusals under load are intended
}

/** Logs refusals for want of a key or a right, and each stream, file and export: the client, no key and no query. */
export function auditLog(log: Pick<RequestLogger, 'info'>): OnFinished {
  return (request, { status, bytes, cut }) => {
    const { notes, method, path } = request;
    const what = whatOf(notes, method, status);
    if (what === null) return;
    const { client, rights, exported, resource, refusal } = notes;
    const isWholeFile = exported !== null && status === 200;
    const rows = isWholeFile ? exported.rows : notes.rows;
    log.info(
      {
        audit: what,
        requestId: requestIdOf(request),
        client,
        ...(rights !== '' && { rights }),
        method,
        path: path.slice(0, LONGEST_PATH),
        resource: exported?.resource ?? resource,
        status,
        ...(what === 'refused' ? { code: refusal } : { rows, bytes, end: endOf(cut) }),
      },
      'audit',
    );
  };
}

/** `exported`: a set left the server. `ordered`: it will. null: neither, and nothing was refused. */
function whatOf({ refusal, route, cost }: Notes, method: string, status: number): string | null {
  if (refusal !== null) return 'refused';
  if (status === 202 && (route === '/exports' || cost === 'stream')) return 'ordered';
  const isSet = cost === 'stream' || cost === 'download';
  return method === 'GET' && isSet && (status === 200 || status === 206) ? 'exported' : null;
}

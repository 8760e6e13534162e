import { AppError } from '../base/errors.ts';
import { bindSpan, type SpanBeginning, type Tracer } from '../base/span.ts';
import type { Ending, Request } from '../engine/edge.ts';
import { requestIdOf } from '../http/request-id.ts';
import { METHODS } from './metrics.ts';
import { endOf, TRACEPARENT } from './request-log.ts';

/**
 * Begins the span of a request whose route is known, if it is sampled. Probes and metrics, which machines ask for every few
 * seconds, have none.
 */
export function beginRequestSpan(tracer: Tracer, request: Request): void {
  const { notes, headers } = request;
  if (notes.cost === 'watch') return;
  const span = tracer.begin(headers.traceparent, () => beginningOf(request));
  if (span === null) return;
  notes.span = span;
  bindSpan(request.signal, span);
}

/** The path is that of the route, because ids of rows are values. What no route has may be anything, and is left out. */
function beginningOf({ method, notes: { route, mount, resource } }: Request): SpanBeginning {
  const known = METHODS.has(method) ? method : '_OTHER';
  return {
    name: route === null ? known : `${known} ${route}`,
    kind: 'server',
    facts: {
      'http.request.method': known,
      'url.scheme': 'http',
      'url.path': route === null ? '/REDACTED' : mount + route,
      ...(route !== null && { 'http.route': route }),
      ...(resource !== null && { 'sluice.resource': resource }),
    },
  };
}

/** Begins a wait for the client of a sampled request. The returned function ends it. */
export function beginWaitSpan({ notes: { span } }: Request): (() => void) | null {
  if (span === null) return null;
  const wait = span.part({ name: 'wait for the socket', kind: 'internal', facts: {} });
  return () => wait.end();
}

/** Ends the span of a request. What was cut, and what answers with a fault of the server, ends with an error. */
export function endRequestSpan(request: Request, { status, bytes, cut }: Ending): void {
  const { span, rows, failure } = request.notes;
  if (span === null) return;
  const facts = {
    ...(status > 0 && { 'http.response.status_code': status }),
    'http.response.body.size': bytes,
    'sluice.rows': rows,
    'sluice.request_id': requestIdOf(request),
  };
  const code = failure instanceof AppError ? failure.code : String(status);
  span.end(facts, cut === null ? (status >= 500 ? code : undefined) : `cut-${endOf(cut)}`);
}

/** The traceparent for what a request leaves to be done later. Undefined: it belongs to no trace. */
export function traceparentOf({
  notes: { span },
  headers: { traceparent = '' },
}: Request): string | undefined {
  if (span !== null) return span.traceparent;
  return TRACEPARENT.test(traceparent) ? traceparent : undefined;
}

/**
 * The closed list of problems a client can meet: code -> HTTP status and title (RFC 9457). A caller's mistake is an
 * AppError with one of these codes; our own mistake is a TypeError or the like that nobody catches before the edge,
 * which answers it with `internal`.
 */
export const PROBLEMS = {
  'invalid-parameter': { status: 400, title: 'A query parameter is not valid' },
  'unknown-parameter': { status: 400, title: 'A query parameter is not known here' },
  'duplicate-parameter': { status: 400, title: 'A query parameter is given more than once' },
  'conflicting-parameters': { status: 400, title: 'Query parameters exclude each other' },
  'offset-too-deep': { status: 400, title: 'The offset is too deep' },
  'invalid-cursor': { status: 400, title: 'The cursor is broken' },
  'cursor-mismatch': { status: 400, title: 'The cursor belongs to another sort or filter' },
  'snapshot-unsupported': { status: 400, title: 'The store keeps no past states' },
  'invalid-url': { status: 400, title: 'The URL is malformed' },
  'invalid-header': { status: 400, title: 'A request header is malformed' },
  'malformed-json': { status: 400, title: 'The request body is not JSON' },
  unauthorized: { status: 401, title: 'An API key is needed' },
  'not-found': { status: 404, title: 'Nothing is here' },
  'method-not-allowed': { status: 405, title: 'The method is not allowed here' },
  'not-acceptable': { status: 406, title: 'No acceptable form of the answer' },
  'export-not-complete': { status: 409, title: 'The export has no file' },
  'snapshot-expired': { status: 410, title: 'The point in time is gone' },
  'collection-replaced': { status: 410, title: 'The collection is gone or another one' },
  'precondition-failed': { status: 412, title: 'The resource is not in the state asked for' },
  'body-too-large': { status: 413, title: 'The request body is too large' },
  'uri-too-long': { status: 414, title: 'The URL is too long' },
  'unsupported-media-type': { status: 415, title: 'The request body has a form that is not taken' },
  'range-not-satisfiable': { status: 416, title: 'The range is beyond the end' },
  'invalid-body': { status: 422, title: 'The request body is not valid' },
  'rate-limited': { status: 429, title: 'Too many requests' },
  'too-many-streams': { status: 429, title: 'Too many open streams' },
  'too-many-exports': { status: 429, title: 'Too many exports' },
  internal: { status: 500, title: 'The server made a mistake' },
  overloaded: { status: 503, title: 'The server has as much to do as it can' },
  'store-unavailable': { status: 503, title: 'The store cannot be reached' },
  'store-unfit': { status: 503, title: 'The store cannot be read reliably' },
  'insufficient-storage': { status: 507, title: 'The disk is full' },
} as const;

export type ProblemCode = keyof typeof PROBLEMS;

/** One thing that is wrong with a request body: where (a JSON Pointer, RFC 6901), what was expected and what came. */
export interface BodyFault {
  readonly pointer: string;
  readonly detail: string;
}

/** What a problem may carry beside its code: `detail` says what was expected and what came. */
export interface ProblemExtras {
  /** The query parameter at fault. */
  readonly parameter?: string;
  /** All that is wrong with the body. */
  readonly errors?: readonly BodyFault[];
  /** Extra response headers, lower-case names (Retry-After, Allow). */
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** An error that a client is told: it becomes an `application/problem+json` answer. */
export class AppError extends Error {
  readonly code: ProblemCode;
  readonly status: number;
  readonly parameter: string | undefined;
  readonly errors: readonly BodyFault[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ProblemCode, detail: string, extras: ProblemExtras = {}) {
    super(detail, { cause: extras.cause });
    this.name = 'AppError';
    this.code = code;
    this.status = PROBLEMS[code].status;
    this.parameter = extras.parameter;
    this.errors = extras.errors;
    this.headers = extras.headers ?? {};
  }
}

/** The store does not answer; `seconds` is what Retry-After says. */
export function storeUnavailable(cause: unknown, seconds = 5): AppError {
  return new AppError('store-unavailable', `The store did not answer. Try again in ${seconds} s.`, {
    cause,
    headers: { 'retry-after': String(seconds) },
  });
}

/** The store can never be used again by this process, which is to end at once and to be started anew. */
export class StoreLostError extends AppError {
  constructor(cause: Error) {
    super(
      'store-unavailable',
      `The embedded store can no longer be used by this process (${cause.message}). ` +
        'All that was acknowledged is on disk: start the process anew.',
      { cause, headers: { 'retry-after': '5' } },
    );
    this.name = 'StoreLostError';
  }
}

/** How long an operator takes at least to mend a store. Seconds. */
const MENDED_SECONDS = 30;

/** The store answers, but what it has cannot be read reliably until its operator has mended it. */
export function storeUnfit(detail: string, cause?: unknown): AppError {
  return new AppError('store-unfit', detail, {
    cause,
    headers: { 'retry-after': String(MENDED_SECONDS) },
  });
}

/** What has begun in one collection cannot go on in another of the same name. */
export function collectionReplaced(cause?: unknown): AppError {
  return new AppError(
    'collection-replaced',
    'The collection that this began with was dropped, renamed or replaced. What came before cannot be completed: begin anew, without a cursor or part.',
    { cause },
  );
}

/** A point in time was asked for where the store has only a present. */
export function snapshotUnsupported(cause?: unknown): AppError {
  return new AppError(
    'snapshot-unsupported',
    'Only a MongoDB replica set keeps points in time; this store does not. Leave out consistency and at.',
    { parameter: 'consistency', cause },
  );
}

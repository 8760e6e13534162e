import { named, Type, type Static } from './schema.ts';

interface Problem {
  readonly status: number;
  readonly title: string;
  readonly explanation: string;
  readonly retry?: number;
}

/**
 * The closed list of problems that a client can meet. Each code has an HTTP status, a title (RFC 9457), and an
 * explanation for authors of clients: why the problem occurs and what to do about it. `retry`: the value of
 * Retry-After, in seconds, unless the error knows a better one. A client's mistake is an AppError with one of these codes. A mistake of ours
 * is a TypeError or similar that nobody catches before the edge, which answers it with `internal`.
 */
export const PROBLEMS = {
  'invalid-parameter': {
    status: 400,
    title: 'A query parameter is not valid',
    explanation:
      'A query parameter has a value that is not of its form. The detail says which form is expected; nothing is rounded, cut or ignored.',
  },
  'unknown-parameter': {
    status: 400,
    title: 'A query parameter is not known here',
    explanation:
      'The resource has no parameter of this name. Names are case-sensitive. A parameter that is ignored would be a filter that does not filter, so it is refused.',
  },
  'duplicate-parameter': {
    status: 400,
    title: 'A query parameter is given more than once',
    explanation: 'A parameter was given twice. It would be a guess which one was meant.',
  },
  'conflicting-parameters': {
    status: 400,
    title: 'Query parameters exclude each other',
    explanation:
      'Parameters exclude each other: at most one of offset, page and cursor; min_price and max_price only with a price sort.',
  },
  'offset-too-deep': {
    status: 400,
    title: 'The offset is too deep',
    explanation:
      'Counting to a row costs more the deeper it is. Take the nextCursor of any page and continue with cursor: every page then costs the same.',
  },
  'invalid-cursor': {
    status: 400,
    title: 'The cursor is broken',
    explanation:
      'The cursor is not one that this server gave, or it was changed on the way. Use the nextCursor of a page unchanged.',
  },
  'cursor-mismatch': {
    status: 400,
    title: 'The cursor belongs to another sort or filter',
    explanation:
      'A cursor continues one order of one set of rows. Repeat the sort, category and price range of the page it came from. The cursor of a snapshot goes on at its own point in time, and in a stream only.',
  },
  'snapshot-unsupported': {
    status: 400,
    title: 'The store keeps no past states',
    explanation:
      'consistency=snapshot and at read all rows as they were at one point in time. That takes a MongoDB replica set; the embedded store and a single mongod have only the present.',
  },
  'invalid-url': {
    status: 400,
    title: 'The URL is malformed',
    explanation: 'The path of the URL is not percent-encoded UTF-8.',
  },
  'invalid-header': {
    status: 400,
    title: 'A request header is malformed',
    explanation:
      'A request header has a value that its RFC does not allow. The detail names the header. It is not ignored, because it may be the condition that keeps a write from doing harm.',
  },
  'malformed-json': {
    status: 400,
    title: 'The request body is not JSON',
    explanation:
      'The request body is empty, not UTF-8 or not JSON. The detail says at which line and column reading ended.',
  },
  unauthorized: {
    status: 401,
    title: 'An API key is needed',
    explanation:
      'The server asks for an API key. Send it as "Authorization: Bearer KEY"; it must be one that the operator entered.',
  },
  'not-found': {
    status: 404,
    title: 'Nothing is here',
    explanation: 'Nothing has this address: the path is no resource, or the item or user does not exist.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'The method is not allowed here',
    explanation: 'The resource exists, but does not take this method. Allow names those that it takes.',
  },
  'not-acceptable': {
    status: 406,
    title: 'No acceptable form of the answer',
    explanation:
      'The resource has no form that Accept or Accept-Encoding allows. The detail names the forms there are.',
  },
  'export-not-complete': {
    status: 409,
    title: 'The export has no file',
    explanation:
      'An export has a file when its state is complete. While it is queued or running, ask for the export again; one that failed says why, and has to be ordered anew.',
  },
  'snapshot-expired': {
    status: 410,
    title: 'The point in time is gone',
    explanation:
      'MongoDB keeps past states for some minutes only (minSnapshotHistoryWindowInSeconds, 5 minutes by default), and not beyond a change of the indexes. Begin anew with consistency=snapshot, or have the operator set a longer window.',
  },
  'collection-replaced': {
    status: 410,
    title: 'The collection is gone or another one',
    explanation:
      'The collection was dropped, renamed or replaced by another one of the same name since this cursor or part was given. Rows of two collections together are the whole of neither, so a stream does not go on: drop what came before, and begin anew. A page goes on with such a cursor.',
  },
  'precondition-failed': {
    status: 412,
    title: 'The resource is not in the state asked for',
    explanation:
      'If-Match names a state that the resource no longer has, or If-None-Match one that it has. Nothing was changed. Get the resource, decide again, and send its ETag.',
  },
  'body-too-large': {
    status: 413,
    title: 'The request body is too large',
    explanation: 'The request body is larger than this server takes.',
  },
  'uri-too-long': {
    status: 414,
    title: 'The URL is too long',
    explanation: 'The URL is longer than this server takes.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'The request body has a form that is not taken',
    explanation:
      'The request body has a Content-Type or Content-Encoding that this operation does not take. Accept, Accept-Post, Accept-Patch or Accept-Encoding of the answer name those that it takes.',
  },
  'range-not-satisfiable': {
    status: 416,
    title: 'The range is beyond the end',
    explanation: 'Range asks for bytes behind the end of the file. Content-Range says how long it is.',
  },
  'invalid-body': {
    status: 422,
    title: 'The request body is not valid',
    explanation:
      'The request body is JSON, but not what this operation takes. errors lists all that is wrong: a JSON Pointer to the place, what was expected and what came.',
  },
  'sort-value-too-long': {
    status: 422,
    title: 'A page cannot end at these rows',
    explanation:
      'The rows of the page have ids or sort values of many kilobytes, and no cursor of at most 12 KiB can continue after any of them. A larger limit may end the page at another row. Pages by offset and the stream pass these rows.',
  },
  'rate-limited': {
    status: 429,
    title: 'Too many requests',
    explanation:
      'This client made more requests than RATE_LIMIT allows. Wait as many seconds as Retry-After says; RateLimit tells what is left.',
    retry: 1, // the limiter knows the rest of the window
  },
  'too-many-streams': {
    status: 429,
    title: 'Too many open streams',
    explanation:
      'This client has as many streams open as STREAM_LIMIT allows. Finish or close one before opening the next.',
    retry: 5, // nobody knows when a stream will end, so this only sets the pace
  },
  'too-many-exports': {
    status: 429,
    title: 'Too many exports',
    explanation:
      'This client has as many exports as EXPORT_LIMIT allows, those that are finished included. DELETE one that is not needed any more, or wait until one expires.',
    retry: 30, // exports end when they end, or are removed, so this only sets the pace
  },
  internal: {
    status: 500,
    title: 'The server made a mistake',
    explanation:
      'The server made a mistake, which it has logged. Quote the requestId to its operator. Repeating a GET does no harm.',
  },
  overloaded: {
    status: 503,
    title: 'The server has as much to do as it can',
    explanation: 'The server has as much to do as it can do well. Wait as many seconds as Retry-After says.',
    retry: 2, // the guard measures every 100 ms
  },
  'store-unavailable': {
    status: 503,
    title: 'The store cannot be reached',
    explanation:
      'The database behind the server does not answer. The server tries by itself; wait as many seconds as Retry-After says.',
    retry: 5,
  },
  'store-unfit': {
    status: 503,
    title: 'The store cannot be read reliably',
    explanation:
      'The database answers, but its rows would not come exactly once: the collection is gone or holds something else, an index is missing, partial or spoilt by an array, or the database does not let this server read it. The log and /readyz tell its operator what to mend; the server then goes on by itself.',
    retry: 30, // the least time an operator needs to repair a store
  },
  'insufficient-storage': {
    status: 507,
    title: 'The disk is full',
    explanation: 'The disk under the store is full. Nothing of the request was kept.',
  },
} as const satisfies Readonly<Record<string, Problem>>;

export type ProblemCode = keyof typeof PROBLEMS;

const text = (description: string) => Type.String({ description });

/** A problem document (RFC 9457). */
export const PROBLEM = named(
  'Problem',
  Type.Object(
    {
      type: text('a URL that explains the problem'),
      title: text('the problem in a few words'),
      status: Type.Integer({ minimum: 400, maximum: 599, description: 'the status of the answer' }),
      detail: text('what was expected and what came'),
      instance: text('the path that was asked for'),
      code: Type.Unsafe<string>({
        type: 'string',
        enum: Object.keys(PROBLEMS),
        description: 'the problem in a word that does not change',
      }),
      requestId: text('what to quote; the log of the server has it, too'),
      parameter: Type.Optional(text('the query parameter at fault')),
      errors: Type.Optional(
        Type.Array(
          Type.Object(
            {
              pointer: text('where: a JSON Pointer (RFC 6901)'),
              detail: text('what was expected and what came'),
            },
            { additionalProperties: false, description: 'one thing that is wrong with a request body' },
          ),
          { description: 'all that is wrong with the request body' },
        ),
      ),
    },
    { additionalProperties: false, description: 'a problem document (RFC 9457)' },
  ),
);
export type ProblemDocument = Readonly<Static<typeof PROBLEM>>;

/** One fault of a request body: its place (a JSON Pointer, RFC 6901), what was expected and what was received. */
export interface BodyFault {
  readonly pointer: string;
  readonly detail: string;
}

/** What a problem may carry beside its code and `detail`; `detail` tells what was expected and what was received. */
export interface ProblemExtras {
  /** The query parameter at fault. */
  readonly parameter?: string;
  /** All faults of the body. */
  readonly errors?: readonly BodyFault[];
  /** The value of Retry-After, in seconds, where it is not the one of the catalogue. */
  readonly retrySeconds?: number;
  /** Extra response headers with names in lower case (Allow). */
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** An error that is reported to the client as an `application/problem+json` answer. */
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
    const seconds = extras.retrySeconds ?? retrySecondsOf(code);
    this.headers =
      seconds === undefined ? (extras.headers ?? {}) : { ...extras.headers, 'retry-after': String(seconds) };
  }
}

/** When to try again after a problem, in seconds. Undefined when its answers do not always tell. */
export function retrySecondsOf(code: ProblemCode): number | undefined {
  const problem: Problem = PROBLEMS[code];
  return problem.retry;
}

/** The error for a store that does not answer. */
export function storeUnavailable(cause: unknown): AppError {
  const detail = `The store did not answer. Try again in ${PROBLEMS['store-unavailable'].retry} s.`;
  return new AppError('store-unavailable', detail, { cause });
}

/** This process can never use the store again. It must end at once and be started anew. */
export class StoreLostError extends AppError {
  constructor(cause: Error) {
    super(
      'store-unavailable',
      `The embedded store can no longer be used by this process (${cause.message}). ` +
        'All that was acknowledged is on disk: start the process anew.',
      { cause },
    );
    this.name = 'StoreLostError';
  }
}

/** The error for a store that answers, but whose data cannot be read reliably until its operator has repaired it. */
export function storeUnfit(detail: string, cause?: unknown): AppError {
  return new AppError('store-unfit', detail, { cause });
}

/** The error for work that began in one collection and cannot continue in another of the same name. */
export function collectionReplaced(cause?: unknown): AppError {
  return new AppError(
    'collection-replaced',
    'The collection that this began with was dropped, renamed or replaced. What came before cannot be completed: begin anew, without a cursor or part.',
    { cause },
  );
}

/** The error for a request for a point in time from a store that keeps only its present state. */
export function snapshotUnsupported(cause?: unknown): AppError {
  return new AppError(
    'snapshot-unsupported',
    'Only a MongoDB replica set keeps points in time; this store does not. Leave out consistency and at.',
    { parameter: 'consistency', cause },
  );
}

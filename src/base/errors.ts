import { PROBLEMS, type ProblemCode } from './problems.ts';
import { listOf, namedObject, object, text, Type, wordOf, type Static } from './schema.ts';

const BODY_FAULT = object('one fault of the request body', {
  pointer: text('a JSON Pointer to the fault (RFC 6901)'),
  detail: text('what was expected and what was received'),
});
export type BodyFault = Readonly<Static<typeof BODY_FAULT>>;

export const PROBLEM = namedObject('Problem', 'a problem document (RFC 9457)', {
  type: text('a URL that explains the problem'),
  title: text('the kind of problem, in a few words'),
  status: Type.Integer({ minimum: 400, maximum: 599, description: 'the HTTP status code of the response' }),
  detail: text('what was expected and what was received'),
  instance: text('the path of the request'),
  code: wordOf<string>(Object.keys(PROBLEMS), 'the stable code of this kind of problem'),
  requestId: text('the id of this request in the log of the server: quote it in reports'),
  parameter: Type.Optional(text('the name of the query parameter at fault')),
  errors: Type.Optional(listOf('every fault of the request body', BODY_FAULT)),
});
export type ProblemDocument = Readonly<Static<typeof PROBLEM>>;

/** What a problem may carry beside its code and `detail`; `detail` says what was expected and what was received. */
interface ProblemExtras {
  /** The query parameter at fault. */
  readonly parameter?: string;
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
    const { status, retry }: { readonly status: number; readonly retry?: number } = PROBLEMS[code];
    this.status = status;
    this.parameter = extras.parameter;
    this.errors = extras.errors;
    const seconds = extras.retrySeconds ?? retry;
    this.headers =
      seconds === undefined ? (extras.headers ?? {}) : { ...extras.headers, 'retry-after': String(seconds) };
  }
}

/** What the operator has to mend in the settings, the declarations or the keys, one sentence each. */
export class Faults extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'Faults';
    this.faults = faults;
  }
}

/** The error for a store that does not answer. */
export function storeUnavailable(cause: unknown): AppError {
  const detail = `The store did not respond. Try again in ${PROBLEMS['store-unavailable'].retry} s.`;
  return new AppError('store-unavailable', detail, { cause });
}

/** The error for a cursor or a part that no server on this store has written. */
export function noSuchPlace(cause?: unknown): AppError {
  return new AppError('invalid-cursor', 'The cursor or part names no place in this store.', { cause });
}

/** The error for a store that answers, but whose data cannot be read reliably until its operator has repaired it. */
export function storeUnfit(detail: string, cause?: unknown): AppError {
  return new AppError('store-unfit', detail, { cause });
}

/** The error for work that began in one collection and cannot continue in another of the same name. */
export function collectionReplaced(cause?: unknown): AppError {
  return new AppError(
    'collection-replaced',
    'The collection that this request started from was dropped, renamed or replaced. The rows received before cannot be completed. Start again without a cursor or part.',
    { cause },
  );
}

/** The error for a request for a point in time from a store that keeps only its present state. */
export function snapshotUnsupported(cause?: unknown): AppError {
  return new AppError(
    'snapshot-unsupported',
    'This store does not support snapshots: only a MongoDB replica set does. Omit consistency and at.',
    { parameter: 'consistency', cause },
  );
}

/** The error for a place in the history that the store no longer has. */
export function changesExpired(cause?: unknown): AppError {
  return new AppError(
    'changes-expired',
    'The changes since this cursor are no longer kept. Start again with an empty copy, at the URL in Location.',
    { parameter: 'since', cause },
  );
}

/** The error for a request for changes from a store that has none. `why` is a sentence. */
export function changesUnsupported(why: string, cause?: unknown): AppError {
  return new AppError('changes-unsupported', why, { cause });
}

/** What a command asked for cannot be done. The message says why. */
export class CommandRefusal extends Error {
  override readonly name = 'CommandRefusal';
}

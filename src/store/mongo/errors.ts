import {
  MongoClientClosedError,
  MongoError,
  MongoExpiredSessionError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoOperationTimeoutError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
  MongoWriteConcernError,
} from 'mongodb';
import { DamagedRowsError } from '../values/bson-array.ts';
import { AppError, snapshotUnsupported, storeUnavailable } from '../../base/errors.ts';

interface RefusalOptions extends ErrorOptions {
  readonly brief?: string;
  readonly isGone?: boolean;
}

/** A fault of the database itself, worded so that its operator can repair it. It stops the start of the server. */
export class MongoRefusal extends Error {
  override readonly name = 'MongoRefusal';
  /** The text for /readyz, which anybody may read. It says less than the log. */
  readonly brief: string;
  /** Whether the fault is that the collection no longer exists. */
  readonly isGone: boolean;

  constructor(message: string, { brief = message, isGone = false, ...options }: RefusalOptions = {}) {
    super(message, options);
    this.brief = brief;
    this.isGone = isGone;
  }
}

/** Whether the store refuses a call because no collection has the name. */
export function isGone(error: unknown): boolean {
  return error instanceof AppError && error.cause instanceof MongoRefusal && error.cause.isGone;
}

/** The same command is likely to succeed at once, on another member or on this one. */
const PASSING: ReadonlySet<unknown> = new Set([
  6, // HostUnreachable
  7, // HostNotFound
  43, // CursorNotFound
  89, // NetworkTimeout
  91, // ShutdownInProgress
  112, // WriteConflict
  134, // ReadConcernMajorityNotAvailableYet
  136, // CappedPositionLost
  175, // QueryPlanKilled
  189, // PrimarySteppedDown
  237, // CursorKilled
  262, // ExceededTimeLimit
  9001, // SocketException
  10107, // NotWritablePrimary
  11600, // InterruptedAtShutdown
  11601, // Interrupted
  11602, // InterruptedDueToReplStateChange
  13388, // StaleConfig
  13435, // NotPrimaryNoSecondaryOk
  13436, // NotPrimaryOrSecondary
]);

/**
 * The server says that the command itself is wrong, which is a mistake of this server, or not permitted (13), which reads
 * say by `store-unfit`. No later attempt mends it. Every other code with a name is about the state of MongoDB
 * (src/mongo/base/error_codes.yml), also one that is not known yet. In order: BadValue, FailedToParse, Unauthorized,
 * TypeMismatch, InvalidBSON, ConflictingUpdateOperators, DollarPrefixedFieldName, InvalidIdField, EmptyFieldName,
 * DottedFieldName, InvalidOptions, InvalidNamespace.
 */
const WRONG_COMMAND: ReadonlySet<number> = new Set([2, 9, 13, 14, 22, 40, 52, 53, 56, 57, 72, 73]);
/** Higher codes have no name, but a place in the source, where a command is nearly always refused for what it says. */
const HIGHEST_NAMED = 15_000;

export const CODES = {
  badValue: 2,
  authenticationFailed: 18,
  unauthorized: 13,
  maxTimeExpired: 50,
  invalidOptions: 72,
  notAReplicaSet: 123,
  snapshotTooOld: 239,
  snapshotUnavailable: 246,
  namespaceNotFound: 26,
  namespaceExists: 48,
  validation: 121,
  otherIdentity: 361,
  duplicateKey: 11000,
  boundsWithoutHint: 51173,
  boundsReversed: 51175,
  clusteredBounds: 6137402,
} as const;

/**
 * Whether a read failed because the collection is no longer the one found at the start: a hinted index is gone (the
 * server reports a hint it cannot follow as a bad value), or a plain collection was replaced by a clustered one.
 */
export function isOtherCollection(error: unknown): boolean {
  return serverCodeOf(error) === CODES.badValue || serverCodeOf(error) === CODES.clusteredBounds;
}

/** The time is no longer kept. With a bad value: the index did not exist at that time. */
const EXPIRED: ReadonlySet<unknown> = new Set([
  CODES.snapshotTooOld,
  CODES.snapshotUnavailable,
  CODES.badValue,
]);

/**
 * Whether this member no longer has, or does not have yet, a point in time. Each has its own history, from its start.
 */
export function isForgotten(error: unknown): boolean {
  return serverCodeOf(error) === CODES.snapshotTooOld || serverCodeOf(error) === CODES.snapshotUnavailable;
}

/** Translates the error of a read at a point in time into the error for the store's callers. */
export function snapshotFault(error: unknown): unknown {
  const code = serverCodeOf(error);
  if (code === CODES.notAReplicaSet) return snapshotUnsupported(error);
  if (code === CODES.invalidOptions)
    return new AppError(
      'invalid-parameter',
      'at must be the value of a Snapshot-At header; the store has not reached this time, or it is not a time.',
      { parameter: 'at', cause: error },
    );
  if (!EXPIRED.has(code)) return error;
  return new AppError(
    'snapshot-expired',
    'The store no longer has the rows of this point in time. Start again with consistency=snapshot.',
    { cause: error },
  );
}

/** The server's code of an error, also of one that `translate` returned. Undefined when it does not come from the server. */
export function serverCodeOf(error: unknown): number | undefined {
  if (error instanceof AppError && error.code === 'store-unavailable') return serverCodeOf(error.cause);
  return error instanceof MongoServerError && typeof error.code === 'number' ? error.code : undefined;
}

/** Whether an immediate retry is likely to succeed: the connection broke, or the member changed. */
export function mayRetry(error: unknown): boolean {
  if (error instanceof MongoServerError) return PASSING.has(error.code);
  return error instanceof MongoNetworkError || isSystemError(error);
}

/** `store-unavailable` when the store did not answer. Other errors, such as programming errors, stay as they are. */
export function translate(error: unknown): unknown {
  return isUnavailable(error) ? storeUnavailable(error) : error;
}

/** Whether the store did not answer, or answered without the result for another reason than the command. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof AppError) return false;
  if (error instanceof DamagedRowsError) return true; // the reply was damaged on its way
  if (error instanceof MongoWriteConcernError) return true; // a majority has not confirmed it, so it may be rolled back
  if (error instanceof MongoServerError) return !isOfCommand(serverCodeOf(error));
  if (error instanceof MongoError)
    return mayRetry(error) || UNREACHED.some((type) => error instanceof type) || isPoolError(error);
  return isSystemError(error);
}

function isOfCommand(code: number | undefined): boolean {
  return code !== undefined && (code > HIGHEST_NAMED || WRONG_COMMAND.has(code));
}

const UNREACHED = [
  MongoServerSelectionError,
  MongoOperationTimeoutError,
  MongoTopologyClosedError,
  MongoNotConnectedError,
  MongoClientClosedError,
  MongoExpiredSessionError, // the store was closed during a read
];

/** The driver does not export these classes, only their names. */
function isPoolError(error: MongoError): boolean {
  return error.name === 'MongoPoolClosedError' || error.name === 'MongoWaitQueueTimeoutError';
}

/** Errors of sockets and name servers that the driver passes on unchanged, as of a lookup of mongodb+srv://. */
function isSystemError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('syscall' in error) return SYSTEM_CALLS.test(String(error.syscall));
  return 'code' in error && SOCKET_ENDED.has(error.code);
}

const SYSTEM_CALLS = /^(query\w+|getaddrinfo|connect|read|write)$/;
const SOCKET_ENDED: ReadonlySet<unknown> = new Set([
  'EPIPE',
  'ECONNRESET',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
  'ERR_SOCKET_CLOSED',
]);

import { MongoCompatibilityError, MongoServerError } from 'mongodb';
import {
  AppError,
  changesExpired,
  changesUnsupported,
  collectionReplaced,
  storeUnavailable,
  storeUnfit,
} from '../../../errors.ts';
import { CODES, isGone, mayRetry, serverCodeOf, translate } from '../errors.ts';
import { isTime, notOfThisStore, type Place } from './place.ts';

/** The history since a place is gone, or cannot be read from there. */
const EXPIRED: ReadonlySet<number> = new Set([
  47, // NoMatchingDocument: the row before a change is no longer kept, or was not kept
  260, // InvalidResumeToken: the stream ended at this place, or its event is not in the history
  280, // ChangeStreamFatalError
  286, // ChangeStreamHistoryLost
]);

/** The place cannot be one of this server: it was made up, or is of another version. */
const NOT_A_PLACE: ReadonlySet<number> = new Set([
  9, // FailedToParse
  15, // Overflow
  40647, // the resume token is not of the expected form
  50811, // the bytes of the token are not those of a key
]);

/** The same can succeed from the same place, on this member a little later or on another one. */
const PASSING: ReadonlySet<number> = new Set([
  43, // CursorNotFound: another member was asked, or the server has closed the cursor
  50, // MaxTimeMSExpired
  72, // InvalidOptions: the member has not heard of the time yet
  133, // FailedToSatisfyReadPreference
  136, // CappedPositionLost
  234, // RetryChangeStream
  237, // CursorKilled
]);

/** MongoDB that is not in a replica set answers so. */
const NOT_REPLICATED = 40573;
/** CommandNotSupportedOnView. */
const ON_VIEW = 166;

export const STANDALONE =
  'This MongoDB keeps no history of changes, because it is not in a replica set. A replica set of one member is enough.';

/** Whether a stream that failed can go on from its last place. */
export function isPassing(error: unknown): boolean {
  if (error instanceof AppError) return error.code === 'store-unavailable';
  const code = serverCodeOf(error);
  if (code !== undefined && PASSING.has(code)) return true;
  // A member that is just starting does not know its replica set: "... does not support sessions".
  return mayRetry(error) || error instanceof MongoCompatibilityError;
}

/** Translates the error of a change stream for the callers of a feed. */
export function feedFault(error: unknown): unknown {
  if (error instanceof AppError) return error;
  const code = serverCodeOf(error);
  if (code === undefined) return isPassing(error) ? storeUnavailable(error) : translate(error);
  if (EXPIRED.has(code)) return changesExpired(error);
  if (NOT_A_PLACE.has(code)) return notOfThisStore(error);
  if (code === NOT_REPLICATED) return changesUnsupported(STANDALONE, error);
  if (code === ON_VIEW) return changesUnsupported('A view has no changes of its own.', error);
  if (code === CODES.unauthorized)
    return storeUnfit('The database does not permit this server to read its changes.', error);
  return isPassing(error) ? storeUnavailable(error) : translate(error);
}

/**
 * The error of a stream that did not open at a client's place. Tokens are parsed by many functions of the server, each
 * with codes of its own. A server error that nothing else explains therefore means that the token is none.
 */
export function placeFault(error: unknown, place: Place): unknown {
  if (isPassing(error)) return error;
  const fault = feedFault(error);
  return fault instanceof MongoServerError && !isTime(place) ? notOfThisStore(fault) : fault;
}

/** Whether a stream cannot go on from its place, but a new one can begin at the present. */
export function isLost(error: unknown): boolean {
  return error instanceof MongoServerError && typeof error.code === 'number' && EXPIRED.has(error.code);
}

/**
 * The error for a reader that had a place, and so had a collection: `collection-replaced` when no collection has the
 * name any more. A reader without a place learns that the collection cannot be served.
 */
export function endOf(error: unknown): unknown {
  return isGone(error) ? collectionReplaced(error) : error;
}

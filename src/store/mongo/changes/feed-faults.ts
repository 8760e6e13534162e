import { MongoCompatibilityError, MongoServerError } from 'mongodb';
import {
  AppError,
  changesExpired,
  changesUnsupported,
  collectionReplaced,
  storeUnavailable,
  storeUnfit,
} from '../../../base/errors.ts';
import { CODES, isGone, serverCodeOf, translate } from '../errors.ts';
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

/** MongoDB that is not in a replica set answers so. */
const NOT_REPLICATED = 40573;
/** CommandNotSupportedOnView. */
const ON_VIEW = 166;

export const STANDALONE =
  'This MongoDB keeps no history of changes, because it is not in a replica set. A replica set of one member is enough.';

/** Whether a stream that failed can go on from its last place, on this member a little later or on another one. */
export function isPassing(error: unknown): boolean {
  const fault = feedFault(error);
  return fault instanceof AppError && fault.code === 'store-unavailable';
}

/** Translates the error of a change stream for the callers of a feed. */
export function feedFault(error: unknown): unknown {
  if (error instanceof AppError) return error;
  const code = serverCodeOf(error);
  if (code !== undefined && EXPIRED.has(code)) return changesExpired(error);
  if (code !== undefined && NOT_A_PLACE.has(code)) return notOfThisStore(error);
  if (code === NOT_REPLICATED) return changesUnsupported(STANDALONE, error);
  if (code === ON_VIEW) return changesUnsupported('A view has no changes of its own.', error);
  if (code === CODES.unauthorized)
    return storeUnfit('The database does not permit this server to read its changes.', error);
  // A member that has not heard of a time yet, or is just starting and does not know its replica set.
  const isEarly = code === CODES.invalidOptions || error instanceof MongoCompatibilityError;
  return isEarly ? storeUnavailable(error) : translate(error);
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

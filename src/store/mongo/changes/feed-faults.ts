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

/**
 * The token of a place is none: it was made up, or is of another version. These are all the codes by which MongoDB 6 to 8 refuses
 * one. Those from 15,000 on stand at one line each of its source.
 */
const NOT_A_TOKEN: ReadonlySet<number> = new Set([
  // BSON of its bytes: FailedToParse, TypeMismatch, Overflow, InvalidUUID, and a size of more than a buffer may have
  ...[9, 14, 15, 207, 13548],
  // the types of its numbers (key_string.cpp, TypeBits)
  ...[50615, 50910],
  // its bytes as a key (key_string.cpp, toBsonValue and what that calls)
  ...[
    50810, 50811, 50813, 50814, 50815, 50816, 50818, 50819, 50821, 50822, 50823, 50824, 50825, 50826, 50828,
  ],
  ...[50829, 50830, 50831, 50845, 50846, 50850],
  // the values in it, and their number (resume_token.cpp)
  ...[
    40646, 40647, 40648, 40649, 50788, 50793, 50794, 50795, 50796, 50854, 50855, 50870, 50872, 51055, 51056,
  ],
  ...[51057, 6189500, 6189501, 6189502, 6189503, 6189504, 6189505, 7182501, 7182504],
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
  if (code === NOT_REPLICATED) return changesUnsupported(STANDALONE, error);
  if (code === ON_VIEW) return changesUnsupported('A view has no changes of its own.', error);
  if (code === CODES.unauthorized)
    return storeUnfit('The database does not permit this server to read its changes.', error);
  // A member that has not heard of a time yet, or is just starting and does not know its replica set.
  const isEarly = code === CODES.invalidOptions || error instanceof MongoCompatibilityError;
  return isEarly ? storeUnavailable(error) : translate(error);
}

/**
 * The error of a stream that did not open at a client's place. The command is the same for all places of one kind, so what is
 * wrong with neither the token nor the history is about the state of MongoDB, whatever its code.
 */
export function placeFault(error: unknown, place: Place): unknown {
  const code = serverCodeOf(error);
  if (code !== undefined && NOT_A_TOKEN.has(code) && !isTime(place)) return notOfThisStore(error);
  const fault = feedFault(error);
  return fault instanceof MongoServerError ? storeUnavailable(fault) : fault;
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

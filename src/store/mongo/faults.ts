import {
  AppError,
  collectionReplaced,
  noSuchPlace,
  storeUnavailable,
  storeUnfit,
} from '../../base/errors.ts';
import type { Identity } from '../bookmark.ts';
import { CODES, serverCodeOf, isOtherCollection, snapshotFault } from './errors.ts';
import type { When } from './lane/lane.ts';

/**
 * Translates the error of a failed read, and forgets the layout when the collection differs from it. The third argument
 * is taken from the plan: without an `identity`, the read accepts any collection of that name.
 */
export function faultOf(error: unknown, layouts: { forget(): void }, { at, since, identity }: When): unknown {
  const code = serverCodeOf(error);
  if (code === CODES.otherIdentity) {
    layouts.forget();
    return identity === undefined ? storeUnavailable(error) : collectionReplaced(error);
  }
  if (code === CODES.boundsReversed) return noSuchPlace(error); // only a place that no row can have lies beyond all bounds
  if (code === CODES.unauthorized) {
    layouts.forget();
    return storeUnfit('The database does not permit this server to read the requested data.', error);
  }
  // A member that has just connected may not have heard of a time that a cursor carries. It will soon.
  if (at === undefined && since !== undefined && code === CODES.invalidOptions)
    return storeUnavailable(error);
  const isOther = isOtherCollection(error);
  const fault = at === undefined ? error : snapshotFault(error);
  if (isOther || code === CODES.namespaceNotFound || fault !== error) layouts.forget();
  return isOther && fault === error ? storeUnavailable(error) : fault;
}

/** The second read may meet a look at the indexes that began in the old collection. */
const MOST_READS = 3;

/**
 * Runs a read that accepts any collection of the name (no `identity`). When it fails because the collection is no longer
 * the one that was known, it runs again, in the collection that is there now: a layout is looked for again after such an error.
 */
export async function inPresentCollection<T>(
  identity: Identity | undefined,
  signal: AbortSignal,
  read: () => Promise<T>,
): Promise<T> {
  for (let reads = 1; ; reads++) {
    try {
      return await read();
    } catch (error) {
      signal.throwIfAborted();
      if (identity !== undefined || reads === MOST_READS || !isOutdated(error)) throw error;
    }
  }
}

function isOutdated(error: unknown): boolean {
  if (!(error instanceof AppError) || error.code !== 'store-unavailable') return false;
  return serverCodeOf(error) === CODES.otherIdentity || isOtherCollection(error);
}

import { AppError } from '../../errors.ts';
import type { Identity } from '../bookmark.ts';
import { CODES, isOtherCollection, serverCodeOf } from './errors.ts';

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

/** See faultOf. */
function isOutdated(error: unknown): boolean {
  if (!(error instanceof AppError) || error.code !== 'store-unavailable') return false;
  const cause = error.cause instanceof AppError ? error.cause.cause : error.cause;
  return serverCodeOf(cause) === CODES.otherIdentity || isOtherCollection(cause);
}

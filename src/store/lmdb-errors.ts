import { constants } from 'node:os';
import { AppError, storeUnavailable } from '../errors.ts';

/** LMDB's own code for a file that has reached the size of its map. */
const MAP_FULL = -30792;
const { ENOSPC, EDQUOT, EFBIG } = constants.errno;
const NO_SPACE: ReadonlySet<number> = new Set([ENOSPC, EDQUOT, EFBIG, MAP_FULL]);

/**
 * What a failed commit is told as: `insufficient-storage` when there is no space, else `store-unavailable`. lmdb gives
 * the cause as a second promise, which rejects beside the first one.
 */
export async function commitFault(error: unknown): Promise<unknown> {
  if (!(error instanceof Error && 'commitError' in error)) return storeFault(error);
  try {
    await error.commitError;
  } catch (cause) {
    return storeFault(cause);
  }
  return storeFault(error);
}

/** An error of LMDB, which has a number for a code, as AppError; any other (our own mistake) as it is. */
export function storeFault(error: unknown): unknown {
  if (error instanceof AppError || !(error instanceof Error)) return error;
  const code = 'code' in error ? error.code : 'commitError' in error ? 0 : null;
  if (typeof code !== 'number') return error;
  if (!NO_SPACE.has(code)) return storeUnavailable(error);
  return new AppError('insufficient-storage', 'The disk of the store is full: nothing was written.', {
    cause: error,
  });
}

import { statfs } from 'node:fs/promises';
import { constants } from 'node:os';
import { AppError, storeUnavailable } from '../../errors.ts';
import { codeOf } from './failures.ts';

/** LMDB's own code for a file that has reached the size of its map. */
const MAP_FULL = -30792;
const { ENOSPC, EDQUOT, EFBIG, EIO } = constants.errno;
const NO_SPACE: ReadonlySet<number> = new Set([ENOSPC, EDQUOT, EFBIG, MAP_FULL]);
/** Less free space than this after a short write, and the disk is full. */
const FULL_BELOW = 1024 * 1024;

/**
 * What a failed commit is told as: AppError `insufficient-storage` when there is no space, else `store-unavailable`.
 * LMDB says EIO for a write that was cut short, and a full disk cuts the first write that does not fit: so `directory`
 * is asked for its free space.
 */
export async function commitFault(error: unknown, directory: string): Promise<unknown> {
  const isFull = codeOf(error) === EIO && (await freeBytes(directory)) < FULL_BELOW;
  return isFull ? diskFull(error) : storeFault(error);
}

/** An error of LMDB, which has a number for a code, as AppError; any other (our own mistake) as it is. */
export function storeFault(error: unknown): unknown {
  const code = codeOf(error);
  if (code === null) return error;
  return NO_SPACE.has(code) ? diskFull(error) : storeUnavailable(error);
}

function diskFull(cause: unknown): AppError {
  return new AppError('insufficient-storage', 'The disk of the store is full: the rows were not written.', {
    cause,
  });
}

/** Free space for those who are not root; Infinity when that cannot be told, as then the disk is not known to be full. */
function freeBytes(directory: string): Promise<number> {
  return statfs(directory).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => Infinity,
  );
}

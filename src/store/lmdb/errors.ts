import { statfs } from 'node:fs/promises';
import { constants } from 'node:os';
import { AppError, storeUnavailable } from '../../errors.ts';
import { codeOf } from '../../thrown.ts';

/** LMDB's own code for a file that has reached the size of its map. */
const MAP_FULL = -30792;
const { ENOSPC, EDQUOT, EFBIG, EIO } = constants.errno;
const NO_SPACE: ReadonlySet<number> = new Set([ENOSPC, EDQUOT, EFBIG, MAP_FULL]);
/** After a short write, the disk counts as full when less than this is free. Bytes. */
const FULL_BELOW = 1024 * 1024;

/**
 * Translates the error of a failed commit: to AppError `insufficient-storage` when there is no space, else to
 * `store-unavailable`. LMDB reports EIO for a write that was cut short, and a full disk cuts the first write that does
 * not fit. So the free space of `directory` is checked.
 */
export async function commitFault(error: unknown, directory: string): Promise<unknown> {
  const isFull = codeOf(error) === EIO && (await freeBytes(directory)) < FULL_BELOW;
  return isFull ? diskFull(error) : storeFault(error);
}

/**
 * Translates an error of LMDB, which has a number as its code, to AppError. Returns any other error (a programming
 * error) as it is.
 */
export function storeFault(error: unknown): unknown {
  const code = codeOf(error);
  if (typeof code !== 'number') return error;
  return NO_SPACE.has(code) ? diskFull(error) : storeUnavailable(error);
}

function diskFull(cause: unknown): AppError {
  return new AppError(
    'insufficient-storage',
    'The disk of the store is full. No row of the request was written.',
    {
      cause,
    },
  );
}

/**
 * Free space for users other than root, in bytes. Infinity when it cannot be determined: the disk is then not known to
 * be full.
 */
function freeBytes(directory: string): Promise<number> {
  return statfs(directory).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => Infinity,
  );
}

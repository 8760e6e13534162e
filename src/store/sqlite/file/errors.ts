import { statfsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError, storeUnavailable } from '../../../base/errors.ts';
import { codeOf, reasonOf } from '../../../base/error-reason.ts';
import { DamagedRowError } from './checked-rows.ts';

/** Result codes of SQLite (https://sqlite.org/rescode.html). */
const CODE = {
  busy: 5,
  locked: 6,
  readOnly: 8,
  io: 10,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  protocol: 15,
  notDatabase: 26,
} as const;

const BUSY: readonly number[] = [CODE.busy, CODE.locked, CODE.protocol];
/** How long a call may wait for other processes. Milliseconds. */
const LONGEST_BUSY_MS = 30_000;
/** Below this, writes are refused before they begin, so that SQLite never meets a full disk half way. Bytes. */
export const RESERVE_BYTES = 4 * 1024 * 1024;
/** After an I/O error the disk counts as full when less than this is free. Bytes. */
const FULL_BELOW = 1024 * 1024;

/** The primary result code of an error of SQLite. Null for other errors. */
function resultOf(error: unknown): number | null {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code & 0xff : null;
}

/** Whether another connection is in the way: the same call may succeed in a moment. */
function isBusy(error: unknown): boolean {
  const result = resultOf(error);
  return result !== null && BUSY.includes(result);
}

/** Whether a file, or what SQLite needs beside it, cannot be opened or made. */
export function isUnopenable(error: unknown): boolean {
  return resultOf(error) === CODE.cantOpen;
}

/** Repeats a call while another process is in its way, without holding the event loop. */
export async function retryBusy<T>(call: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
  const end = performance.now() + LONGEST_BUSY_MS;
  for (let tries = 0; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= end) throw error;
    }
    await delay(Math.min(tries + 1, 5));
    signal?.throwIfAborted();
  }
}

export function isDamage(error: unknown): boolean {
  const result = resultOf(error);
  if (error instanceof DamagedRowError || result === CODE.corrupt || result === CODE.notDatabase) return true;
  return error instanceof Error && LOST.test(error.message);
}

/**
 * A statement of ours names what the file has no more: the text of its schema is another one. Or a number is larger than
 * any that is written.
 */
const LOST = /^no such (table|column|index): |^Value is too large to be represented/;

/** Translates an error of SQLite, or of the mark beside its file, to an AppError. Returns any other error (a programming error) as it is. */
export function storeFault(error: unknown, directory: string): unknown {
  if (isDamage(error)) return storeDamaged(error);
  const result = resultOf(error);
  const code = codeOf(error);
  if (result === null && code !== 'ENOSPC')
    return code === 'ERR_INVALID_STATE' ? storeUnavailable(error) : error;
  if (result === null || result === CODE.full || (result === CODE.io && freeBytes(directory) < FULL_BELOW))
    return diskFull(directory, 0, error);
  if (result === CODE.readOnly)
    return new AppError('insufficient-storage', 'The file of the store cannot be written.', { cause: error });
  return BUSY.includes(result) || result === CODE.io || result === CODE.cantOpen
    ? storeUnavailable(error)
    : error;
}

/** The error for a file whose bytes are not those that were written. It stays so until a backup is restored. */
function storeDamaged(cause: unknown): AppError {
  return new AppError(
    'store-unfit',
    'The file of the store is damaged here. Its operator has to restore a backup: see `sluice check`.',
    { cause },
  );
}

/** The error for a process whose file is not the one that has its name. It stays so until the process is started again. */
export function storeReplaced(): AppError {
  return new AppError(
    'store-unfit',
    'The file of the store was replaced while this server has it open. Its operator has to start the server again.',
  );
}

/** The error for a disk that has no space for this number of bytes and the reserve. */
export function diskFull(directory: string, bytes = 0, cause?: unknown): AppError {
  return new AppError(
    'insufficient-storage',
    `The disk of the store is full: ${missingSpace(directory, bytes)}. No row of the request was written.`,
    { cause },
  );
}

/** Why the file cannot be opened. */
export function openFault(error: unknown, directory: string): string {
  const result = resultOf(error);
  const isFull = result === CODE.full || freeBytes(directory) < FULL_BELOW;
  return isFull ? `${reasonOf(error)}; ${missingSpace(directory, 0)}` : reasonOf(error);
}

function missingSpace(directory: string, bytes: number): string {
  const missing = Math.max(RESERVE_BYTES + bytes - freeBytes(directory), 1);
  return `free at least ${Math.ceil(missing / 2 ** 20)} MiB more on it`;
}

/** Free space for users other than root, in bytes. Infinity when it cannot be determined. */
export function freeBytes(directory: string): number {
  try {
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize;
  } catch {
    return Infinity;
  }
}

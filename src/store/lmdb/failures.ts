import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { codeOf } from '../../thrown.ts';

/**
 * What lmdb's native part reports of a write transaction: done, visible, or call its callbacks. Other numbers are
 * errors.
 */
const REPORTS: ReadonlySet<number> = new Set([0, 1, 2]);
const VISIBLE = 1;

/** LMDB's own error codes (lmdb.h) that a transaction may fail with. */
const NAMES: Readonly<Record<number, string>> = {
  [-30797]: 'MDB_PAGE_NOTFOUND: a page is missing, the file is damaged',
  [-30796]: 'MDB_CORRUPTED: the file is damaged',
  [-30795]: 'MDB_PANIC: an earlier error leaves the state of the file in doubt',
  [-30792]: 'MDB_MAP_FULL: the file has reached the size of its map',
  [-30788]: 'MDB_TXN_FULL: the transaction has too many pages',
  [-30785]: 'MDB_MAP_RESIZED: another process has made the file larger than the map',
};
const PANIC = -30795;

/** Why LMDB did not begin or commit a transaction. `code` is LMDB's own (below zero) or the system's. */
export class LmdbFailure extends Error {
  override readonly name = 'LmdbFailure';
  readonly code: number;

  constructor(code: number) {
    super(NAMES[code] ?? (code > 0 ? getSystemErrorName(-code) : `LMDB error ${code}`));
    this.code = code;
  }
}

/**
 * Whether LMDB refuses everything from now on, in this process only. A look gets EINVAL because its snapshot could not
 * be renewed; only the text tells why.
 */
export function isPanic(error: unknown): error is Error {
  const code = codeOf(error);
  return (
    code === PANIC || (code === constants.errno.EINVAL && /\bMDB_PANIC\b/.test((error as Error).message))
  );
}

interface Environment {
  /** Runs queued transactions in a thread. */
  startWriting(address: number, report: (status: number) => unknown): unknown;
}

/**
 * Reports the failures of write transactions of a root database of lmdb, before lmdb's JavaScript learns of them. lmdb
 * itself prints the error with its stack to stderr. It tells no caller when a transaction cannot begin (its promise
 * never settles). It also has LMDB format a panic, which overflows a buffer when done several times (`mdb_strerror`
 * appends each text to the one before). `tell` is called before the transaction's promise rejects, if it does. Written
 * for lmdb 3.5.6.
 */
export function hearFailures(root: object, tell: (failure: LmdbFailure) => void): void {
  const environment = 'env' in root ? root.env : null;
  if (!isEnvironment(environment)) throw new TypeError('this version of lmdb has no env.startWriting');
  const startWriting = environment.startWriting.bind(environment);
  const heard: Environment['startWriting'] = (address, report) =>
    startWriting(address, (status) => {
      if (REPORTS.has(status)) return report(status);
      tell(new LmdbFailure(status));
      return report(VISIBLE); // settles what is committed, rejects what failed
    });
  Object.defineProperty(environment, 'startWriting', { value: heard }); // its class makes it read-only
}

function isEnvironment(value: unknown): value is Environment {
  return typeof (value as Partial<Environment> | null)?.startWriting === 'function';
}

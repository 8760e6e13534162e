import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { codeOf } from '../../error-reason.ts';

/** A process that loads renews its mark this often, and counts as ended when it has not for so long. Milliseconds. */
export const RENEW_MS = 2_000;
const SILENT_MS = 15_000;

const THIS_PROCESS = randomUUID();

/** Who loads a set, as it is stored. When it was renewed stands beside it, in the column `alive`. */
export interface LoadMark {
  readonly token: string;
  /** THIS_PROCESS there. Process ids are used again, and in containers always the same. */
  readonly process: string;
  readonly host: string;
  readonly pid: number;
  /** The number of the tables that the rows are sorted into. */
  readonly sorted?: number;
}

export function newMark(): LoadMark {
  return { token: randomUUID(), process: THIS_PROCESS, host: hostname(), pid: process.pid };
}

/**
 * Whether the process that set the mark is at work. `alive`: when it was renewed, `now`: both in milliseconds since 1970.
 * A process of another container is known only by its renewals.
 */
export function isLive(mark: LoadMark, alive: number, now: number): boolean {
  if (mark.process === THIS_PROCESS) return true;
  if (Math.abs(now - alive) > SILENT_MS) return false;
  return mark.host !== hostname() || (mark.pid !== process.pid && isRunning(mark.pid));
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0); // sends nothing
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

/**
 * The priority of a thread that works in the background. It is JavaScript, because threads import it (see
 * `pipeline/parquet-thread.mjs`).
 */
import { readlinkSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import process from 'node:process';

/** What is added to the nice value of the process. Beside a thread that answers requests it then gets a tenth of a core. */
const STEPS = 10;
const LOWEST = constants.priority.PRIORITY_LOW;

/**
 * Lets the threads that answer requests go before this one. To be called in a thread of its own. Linux alone has a
 * priority for each thread: elsewhere this does nothing, because there `setPriority` is for the whole process.
 */
export function lowerPriority() {
  if (process.platform !== 'linux') return;
  try {
    const [pid, , thread] = readlinkSync('/proc/thread-self').split('/').map(Number);
    // A /proc of another namespace has numbers of its own, which are other threads here.
    if (pid === process.pid) setPriority(thread, Math.min(LOWEST, getPriority(thread) + STEPS));
  } catch {
    // Without /proc, or where a sandbox refuses the call, the work is as fast and pages beside it are slower.
  }
}

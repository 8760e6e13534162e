import type { Connection } from './connection.ts';
import { retryBusy } from './errors.ts';

/** How long looks may run in a row before other work of the process gets its turn. */
const TURN_MILLISECONDS = 4;

export type Looks = ReturnType<typeof looksAt>;

/**
 * Looks at the file: short pieces of synchronous work, each of which sees one state of it. `check` is called before each
 * look, and throws when the file cannot be read. `faultOf` translates failures.
 */
export function looksAt(connection: Connection, check: () => void, faultOf: (error: unknown) => unknown) {
  const inTurn = fairTurns();
  const lookAt = <T>(look: () => T): T => {
    check();
    return connection.look(look);
  };
  const repeated = async <T>(look: () => T | Promise<T>, signal?: AbortSignal): Promise<T> => {
    try {
      return await retryBusy(look, signal);
    } catch (error) {
      throw faultOf(error);
    }
  };
  return {
    /** Looks when its turn comes. `isPatient`: others may go first. Rejects with the signal's reason. */
    take: <T>(look: () => T, signal: AbortSignal, isPatient = false): Promise<T> =>
      repeated(() => inTurn(() => lookAt(look), signal, isPatient), signal),
    /** Looks at once. Throws when another process is in the way. */
    now: <T>(look: () => T): T => {
      try {
        return lookAt(look);
      } catch (error) {
        throw faultOf(error);
      }
    },
    /** The same, but waits for others. */
    soon: <T>(look: () => T): Promise<T> => repeated(() => lookAt(look)),
  };
}

/**
 * Only the event loop itself slows a fast reader down, so looks queue up and run from setImmediate. After at most 4 ms (plus
 * the look under way) the loop continues with sockets and timers. Looks of two kinds take turns while there are both: urgent
 * ones that a client waits for, and patient ones of streams under way. Each kind is served first come, first served. So a
 * page waits for the pages before it and as many looks of streams, even when hundreds of streams fill their sockets' buffers.
 *
 * A queue of promises cannot run several looks in one step of the loop and stop by the clock. These take 2.5 µs each when
 * many wait.
 *
 * Returns the function that runs a look when its turn comes and resolves with its result. It rejects with the signal's reason
 * when the signal is aborted by then. `now` is a clock in milliseconds.
 */
export function fairTurns(now: () => number = () => performance.now()) {
  const [urgent, patient]: [(() => void)[], (() => void)[]] = [[], []];
  let [patientNext, isAsked] = [false, false];

  const run = (): void => {
    const end = now() + TURN_MILLISECONDS;
    do {
      const [first, second] = patientNext ? [patient, urgent] : [urgent, patient];
      patientNext = !patientNext;
      (first.shift() ?? second.shift())?.();
      isAsked = urgent.length + patient.length > 0;
    } while (isAsked && now() < end);
    if (isAsked) setImmediate(run);
  };

  return <T>(look: () => T, signal: AbortSignal, isPatient = false): Promise<T> =>
    new Promise((resolve, reject) => {
      const fail: (reason: unknown) => void = reject;
      (isPatient ? patient : urgent).push(() => {
        try {
          signal.throwIfAborted();
          resolve(look());
        } catch (error) {
          fail(error);
        }
      });
      if (!isAsked) setImmediate(run);
      isAsked = true;
    });
}

import type { Connection } from './connection.ts';
import { retryBusy } from './errors.ts';
import { FairScheduler } from './fair-scheduler.ts';

export type Looks = ReturnType<typeof looksAt>;

/**
 * Looks at the file: short pieces of synchronous work, each of which sees one state of it. `check` is called before each
 * look, and throws when the file cannot be read. `faultOf` translates failures.
 */
export function looksAt(connection: Connection, check: () => void, faultOf: (error: unknown) => unknown) {
  const scheduler = new FairScheduler();
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
      repeated(() => scheduler.take(() => lookAt(look), signal, isPatient), signal),
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

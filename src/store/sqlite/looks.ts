import type { Connection } from './connection.ts';
import { retryBusy } from './errors.ts';
import type { StoreFile } from './file.ts';

/** How long looks may run in a row before other work of the process gets its turn. */
const TURN_MILLISECONDS = 4;

/** Looks at the file: short pieces of synchronous work, each of which sees one state of it. */
export class Looks {
  readonly #connection: Connection;
  readonly #file: Pick<StoreFile, 'check' | 'faultOf'>;
  readonly #inTurn = fairTurns();

  constructor(connection: Connection, file: Pick<StoreFile, 'check' | 'faultOf'>) {
    this.#connection = connection;
    this.#file = file;
  }

  /** Looks when its turn comes. `isPatient`: others may go first. Rejects with the signal's reason. */
  take<T>(look: () => T, signal: AbortSignal, isPatient = false): Promise<T> {
    return this.#repeated(() => this.#inTurn(() => this.#lookAt(look), signal, isPatient), signal);
  }

  /** Looks at once. Throws when another process is in the way. */
  now<T>(look: () => T): T {
    try {
      return this.#lookAt(look);
    } catch (error) {
      throw this.#file.faultOf(error);
    }
  }

  /** The same, but waits for others. */
  soon<T>(look: () => T): Promise<T> {
    return this.#repeated(() => this.#lookAt(look));
  }

  #lookAt<T>(look: () => T): T {
    this.#file.check();
    return this.#connection.look(look);
  }

  async #repeated<T>(look: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await retryBusy(look, signal);
    } catch (error) {
      throw this.#file.faultOf(error);
    }
  }
}

/**
 * Only the event loop itself slows a fast reader down, so looks queue up and run from setImmediate. After at most 4 ms (plus
 * the look under way) the loop continues with sockets and timers. Looks of two kinds take turns while there are both: urgent
 * ones that a client waits for, and patient ones of streams under way. Each kind is served first come, first served. So a
 * page waits for the pages before it and as many looks of streams, even when hundreds of streams fill their sockets' buffers.
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

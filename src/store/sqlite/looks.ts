import type { Connection } from './connection.ts';
import { FairScheduler } from './fair-scheduler.ts';
import { retryBusy } from './retry-busy.ts';

/** Looks at the file: short pieces of synchronous work, each of which sees one state of it. */
export class Looks {
  readonly #connection: Connection;
  readonly #scheduler = new FairScheduler();
  readonly #check: () => void;
  readonly #faultOf: (error: unknown) => unknown;

  /** `check` is called before each look, and throws when the file cannot be read. `faultOf` translates failures. */
  constructor(connection: Connection, check: () => void, faultOf: (error: unknown) => unknown) {
    [this.#connection, this.#check, this.#faultOf] = [connection, check, faultOf];
  }

  /** Looks when its turn comes. `isPatient`: others may go first. Rejects with the signal's reason. */
  take<T>(look: () => T, signal: AbortSignal, isPatient = false): Promise<T> {
    return this.#repeated(() => this.#scheduler.take(() => this.#look(look), signal, isPatient), signal);
  }

  /** Looks at once. Throws when another process is in the way. */
  now<T>(look: () => T): T {
    try {
      return this.#look(look);
    } catch (error) {
      throw this.#faultOf(error);
    }
  }

  /** The same, but waits for others. */
  soon<T>(look: () => T): Promise<T> {
    return this.#repeated(() => this.#look(look));
  }

  #look<T>(look: () => T): T {
    this.#check();
    return this.#connection.look(look);
  }

  async #repeated<T>(look: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await retryBusy(look, signal);
    } catch (error) {
      throw this.#faultOf(error);
    }
  }
}

import type { Connection } from './connection.ts';
import { FairScheduler } from './fair-scheduler.ts';
import { retryBusy } from './retry-busy.ts';

export interface LooksOptions {
  readonly connection: Connection;
  /** Called before each look. Throws when the file cannot be read. */
  readonly check: () => void;
  /** Translates the failure of a look for the callers. */
  readonly faultOf: (error: unknown) => unknown;
}

/** Looks at the file: short pieces of synchronous work, each of which sees one state of it. */
export class Looks {
  readonly #options: LooksOptions;
  readonly #scheduler = new FairScheduler();

  constructor(options: LooksOptions) {
    this.#options = options;
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
      throw this.#options.faultOf(error);
    }
  }

  /** The same, but waits for others. */
  soon<T>(look: () => T): Promise<T> {
    return this.#repeated(() => this.#look(look));
  }

  #look<T>(look: () => T): T {
    this.#options.check();
    return this.#options.connection.look(look);
  }

  async #repeated<T>(look: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await retryBusy(look, signal);
    } catch (error) {
      throw this.#options.faultOf(error);
    }
  }
}

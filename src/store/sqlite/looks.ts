import type { Connection } from './connection.ts';
import { FairScheduler } from './fair-scheduler.ts';
import { retryBusy } from './retry-busy.ts';

/** Looks at the file: short pieces of synchronous work, each of which sees one state of it. */
export class Looks {
  readonly #connection: Connection;
  readonly #scheduler = new FairScheduler();
  readonly #check: () => void;

  /** `check` is called before each look. It throws when the file cannot be read. */
  constructor(connection: Connection, check: () => void) {
    this.#connection = connection;
    this.#check = check;
  }

  /** Looks when its turn comes. `isPatient`: others may go first. Rejects with the signal's reason. */
  take<T>(look: () => T, signal: AbortSignal, isPatient = false): Promise<T> {
    return retryBusy(() => this.#scheduler.take(() => this.now(look), signal, isPatient), signal);
  }

  /** Looks at once. Throws when another process is in the way. */
  now<T>(look: () => T): T {
    this.#check();
    return this.#connection.look(look);
  }

  /** The same, but waits for others. */
  soon<T>(look: () => T): Promise<T> {
    return retryBusy(() => this.now(look));
  }
}

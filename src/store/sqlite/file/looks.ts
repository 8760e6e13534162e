import { LookTurns } from '../../turns/look-turns.ts';
import type { Connection } from './connection.ts';
import { retryBusy } from './errors.ts';
import type { StoreFile } from './file.ts';

/** Looks at the file: short pieces of synchronous work, each of which sees one state of it. */
export class Looks {
  readonly #connection: Connection;
  readonly #file: Pick<StoreFile, 'check' | 'faultOf'>;
  readonly #turns: LookTurns;

  constructor(
    connection: Connection,
    file: Pick<StoreFile, 'check' | 'faultOf'>,
    turns: LookTurns = new LookTurns(),
  ) {
    this.#connection = connection;
    this.#file = file;
    this.#turns = turns;
  }

  /** Looks of another connection to the same file, which take turns with these. */
  beside(connection: Connection, file: Pick<StoreFile, 'check' | 'faultOf'>): Looks {
    return new Looks(connection, file, this.#turns);
  }

  /** Looks when its turn comes. `isPatient`: others may go first. Rejects with the signal's reason. */
  take<T>(look: () => T, signal: AbortSignal, isPatient = false): Promise<T> {
    return this.#repeated(() => this.#turns.take(() => this.#lookAt(look), signal, isPatient), signal);
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

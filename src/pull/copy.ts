import { STDOUT, type PullCommand } from './arguments.ts';
import { ChangeLog } from './change-log.ts';
import { codeOf } from '../thrown.ts';
import { BEGINNING, type ProvedPlace } from './proof.ts';
import { Refused } from './retry.ts';

/** A copy of a set that is kept up to date. What it has is proved. */
export interface Copy {
  /** For messages. */
  readonly name: string;
  /** How far the copy has come. */
  readonly place: ProvedPlace;
  /** Adds lines of rows and removals that are not proved yet. The bytes are only valid during the call. */
  add(bytes: Buffer): void;
  /** Takes over what was added, and the place behind it, both or neither. */
  prove(place: ProvedPlace): Promise<void>;
  /** Discards what was added since the last proof. */
  takeBack(): Promise<void>;
  /**
   * Called when the copy is whole for the first time in a run. `rows` requests the ids of all rows, in whole lines.
   * Rejects with Refused when the copy cannot have them all.
   */
  confirm?(rows: () => AsyncIterable<Buffer>): Promise<void>;
  /** Empties the copy: all rows follow again. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/**
 * The copy that a command asks for. Null when it asks for a pull that ends. Rejects with Refused when the file holds
 * something else.
 */
export async function openCopy(
  { into, follow, output, url, restart }: PullCommand,
  stdout: NodeJS.WritableStream,
): Promise<Copy | null> {
  if (into !== null) return (await loadSqlite()).SqliteCopy.open(into, url, restart);
  if (!follow) return null;
  if (output === STDOUT) return new Pipe(stdout);
  return ChangeLog.open(output, url.href, restart);
}

/** Loads the library of SQLite, which is optional. Rejects with Refused when it is not installed. */
async function loadSqlite(): Promise<typeof import('./sqlite.ts')> {
  try {
    return await import('./sqlite.ts');
  } catch (error) {
    if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND' && codeOf(error) !== 'MODULE_NOT_FOUND') throw error;
    throw new Refused('--into requires the package libsql: npm install libsql', { cause: error });
  }
}

/** Lines on standard output, written when they are proved. */
class Pipe implements Copy {
  readonly name = 'standard output';
  place = BEGINNING;
  readonly #stdout: NodeJS.WritableStream;
  #held: Buffer[] = [];

  constructor(stdout: NodeJS.WritableStream) {
    this.#stdout = stdout;
  }

  add(bytes: Buffer): void {
    this.#held.push(Buffer.from(bytes));
  }

  async prove(place: ProvedPlace): Promise<void> {
    const bytes = Buffer.concat(this.#held);
    this.#held = [];
    this.place = place;
    if (bytes.length === 0) return;
    await new Promise<void>((resolve, reject) => {
      this.#stdout.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  }

  takeBack(): Promise<void> {
    this.#held = [];
    return Promise.resolve();
  }

  /** A reader of the pipe cannot be told to begin anew. */
  restart(): Promise<void> {
    throw new Refused('the rows that were written can no longer be brought up to date');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

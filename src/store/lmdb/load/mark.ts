import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { codeOf } from '../../../thrown.ts';
import type { Database } from '../tables.ts';

/** A process that loads renews its mark this often, and counts as ended when it has not for so long. Milliseconds. */
export const RENEW_MS = 2_000;
export const SILENT_MS = 15_000;

const THIS_PROCESS = randomUUID();

/** Who loads a set, as it is stored. */
interface Stored {
  readonly token: string;
  /** THIS_PROCESS there. Process ids are used again, and in containers always the same. */
  readonly process: string;
  readonly host: string;
  readonly pid: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/**
 * The mark of a set that is being loaded. While a set has one, nobody sees its rows, and only the process that set the
 * mark writes them. When that process ends early, the next process that opens the file, or a server that has it open,
 * takes out its rows and the mark.
 */
export class LoadMark {
  readonly #meta: Database;
  readonly #key: Uint8Array;
  readonly #now: () => number;
  /** The token of this process's own load. */
  #own: string | null = null;

  /** `set`: the name of the set, `now`: a clock in milliseconds since 1970. */
  constructor(meta: Database, set: string, now: () => number = Date.now) {
    this.#meta = meta;
    this.#key = Buffer.from(`load ${set}`);
    this.#now = now;
  }

  get isSet(): boolean {
    return this.#meta.getBinary(this.#key) !== undefined;
  }

  /** Whether the process that set the mark is at work. A process of another container is known only by its renewals. */
  get isLive(): boolean {
    const stored = this.#stored();
    if (!stored) return false;
    if (stored.process === THIS_PROCESS) return true;
    if (Math.abs(this.#now() - stored.at) > SILENT_MS) return false;
    return stored.host !== hostname() || (stored.pid !== process.pid && isRunning(stored.pid));
  }

  /** Sets the mark. In a transaction. */
  set(): void {
    this.#own = randomUUID();
    this.#put(this.#own);
  }

  /** Called in each transaction of a load. Throws an Error when the mark is no longer this process's own. */
  renew(): void {
    if (this.#own === null || this.#stored()?.token !== this.#own) throw lost();
    this.#put(this.#own);
  }

  /** Removes the mark. In a transaction. */
  remove(): void {
    this.#own = null;
    this.#meta.removeSync(this.#key);
  }

  #put(token: string): void {
    const [host, pid, at] = [hostname(), process.pid, this.#now()];
    const stored: Stored = { token, process: THIS_PROCESS, host, pid, at };
    this.#meta.putSync(this.#key, Buffer.from(JSON.stringify(stored)));
  }

  #stored(): Stored | null {
    const bytes = this.#meta.getBinary(this.#key);
    return bytes ? (JSON.parse(Buffer.from(bytes).toString()) as Stored) : null;
  }
}

function lost(): Error {
  return new Error(
    'another process took this load for ended, because it was silent for too long, and undid it',
  );
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0); // sends nothing
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

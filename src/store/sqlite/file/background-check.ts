import { reasonOf } from '../../../base/error-reason.ts';
import { storeUnfit } from '../../../base/errors.ts';
import { retryBusy } from './errors.ts';
import type { StoreFile } from './file.ts';
import { IntegrityCheck } from './integrity.ts';
import { meta, setMeta } from './layout.ts';
import type { Looks } from './looks.ts';
import { Maintenance } from './maintenance.ts';
import type { Collections } from './collections.ts';

const EACH_MS = 24 * 60 * 60_000;
/** How often to look whether a check is due, and what those of other processes found. Milliseconds. */
export const LOOK_MS = 5_000;
/** Makes the next check one day later, when it is due. It is, too, when a clock that was ahead has put it off further. */
const CLAIM =
  "insert into meta values ('check', ?) on conflict(key) do update set value = excluded.value" +
  ' where value <= ? or value > excluded.value';

interface Parts {
  readonly file: StoreFile;
  readonly looks: Looks;
  readonly collections: Collections;
  readonly options: {
    /** A clock in milliseconds since 1970. */
    readonly wallClock: () => number;
    readonly onWarning: (message: string) => void;
  };
}

/**
 * The check of a file in the background, once a day and behind an end that was not in order: see IntegrityCheck. One of the
 * processes that have the file open makes it, in a thread with a connection of its own. The file says when the next one is
 * due (`check`) and what the last one found (`fault`), so that all of them know it, and a later start.
 */
export class BackgroundCheck {
  readonly #parts: Parts;
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> | null = null;
  #fault: string | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Throws AppError `store-unfit` when the last check has found a fault. */
  assertFit(): void {
    if (this.#fault !== null)
      throw storeUnfit('The file of the store is damaged. Its operator has to mend it: see `sluice check`.');
  }

  /**
   * `isAtOnce`: a check is due. It is also due when the last one has found a fault. It waits until `cleaned` resolves: its
   * reads would keep the log, and with that the space of what is removed.
   */
  begin(isAtOnce: boolean, cleaned: Promise<void>): void {
    this.#look();
    void cleaned.then(() => {
      if (this.#closing.signal.aborted) return;
      if (isAtOnce || this.#fault !== null) this.#start(true);
      this.#timer = setInterval(() => {
        if (this.#look()) this.#start(false);
      }, LOOK_MS).unref();
    });
  }

  /** Ends a check under way after its statement. The next start makes it. */
  async close(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    this.#closing.abort(new Error('the store is closed'));
    await this.#running;
  }

  /** Notes what was found. Returns whether a check may be due. */
  #look(): boolean {
    const { file, looks, options } = this.#parts;
    try {
      const [fault, due] = looks.now(() => [
        meta(file.connection, 'fault'),
        Number(meta(file.connection, 'check')),
      ]);
      this.#note(fault === null ? null : String(fault));
      const left = due - options.wallClock();
      return left <= 0 || left > EACH_MS;
    } catch {
      return false; // another process is in the way, or the look has noted damage
    }
  }

  #note(fault: string | null): void {
    const { file, options } = this.#parts;
    if (fault !== null && fault !== this.#fault)
      options.onWarning(
        `the file of the store is damaged: ${fault}. Stop every process and run sluice check, which names all faults: restore` +
          ` a backup or, where it names indexes alone, run: sqlite3 ${file.path} reindex`,
      );
    this.#fault = fault;
  }

  #start(isAtOnce: boolean): void {
    this.#running ??= this.#run(isAtOnce)
      .catch((error: unknown) =>
        this.#parts.options.onWarning(`the check of the store in the background failed: ${reasonOf(error)}`),
      )
      .finally(() => (this.#running = null));
  }

  async #run(isAtOnce: boolean): Promise<void> {
    const { file, looks, collections, options } = this.#parts;
    const { connection, path } = file;
    const { signal } = this.#closing;
    if (isAtOnce) await retryBusy(() => setMeta(connection, 'check', 0), signal);
    const now = options.wallClock();
    if ((await retryBusy(() => connection.run(CLAIM, now + EACH_MS, now), signal)) === 0) return;
    const thread = new Maintenance(path);
    try {
      const query: Maintenance['query'] = (...call) => thread.query(...call);
      const fault = await new IntegrityCheck({ looks, collections, query, signal }).fault();
      await retryBusy(() => {
        if (fault === null) connection.run("delete from meta where key = 'fault'");
        else setMeta(connection, 'fault', fault);
      });
      this.#note(fault);
    } catch (error) {
      if (!signal.aborted) throw error;
      await retryBusy(() => setMeta(connection, 'check', 0));
    } finally {
      await thread.close();
    }
  }
}

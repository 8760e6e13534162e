import { reasonOf } from '../../error-reason.ts';
import type { StoreFile } from './file.ts';
import type { Maintenance } from './maintenance.ts';

/** Above this, readers or writers of other processes keep the write-ahead log from beginning anew. Bytes and pages. */
const LONG_LOG_BYTES = 256 * 1024 * 1024;
const LONG_LOG_PAGES = 16_384;

/** Moves what the write-ahead log has into the file, in a thread, when there is much of it. */
export class Checkpoints {
  readonly #file: StoreFile;
  readonly #maintenance: Maintenance;
  readonly #eachPages: number;
  readonly #onWarning: (message: string) => void;
  #next: number;
  #hasWarned = false;

  constructor(
    file: StoreFile,
    maintenance: Maintenance,
    eachPages: number,
    onWarning: (message: string) => void,
  ) {
    this.#file = file;
    this.#maintenance = maintenance;
    this.#eachPages = eachPages;
    this.#onWarning = onWarning;
    this.#next = eachPages;
  }

  /**
   * Makes one when it is due. Writers wait meanwhile, so the checkpoint itself waits for no one. Where a reader keeps the log
   * from beginning anew, the next one comes after as many pages again.
   */
  async make(): Promise<void> {
    try {
      const pages = this.#file.pagesInLog();
      if (pages < this.#eachPages) this.#next = this.#eachPages;
      if (pages < this.#next) return;
      this.#next = pages + this.#eachPages;
      const kind = pages > LONG_LOG_PAGES ? 'restart' : 'passive';
      await this.#maintenance.run(
        `pragma busy_timeout=0; pragma wal_checkpoint(${kind}); pragma busy_timeout=2000`,
      );
      const bytes = this.#file.logBytes();
      if (bytes > LONG_LOG_BYTES && !this.#hasWarned)
        this.#onWarning(
          `the write-ahead log of the store has ${bytes} bytes: another process may read the file and keep it from beginning anew`,
        );
      this.#hasWarned = bytes > LONG_LOG_BYTES;
    } catch (error) {
      this.#onWarning(`the write-ahead log of the store was not moved into the file: ${reasonOf(error)}`);
    }
  }
}

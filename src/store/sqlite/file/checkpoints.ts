import { reasonOf } from '../../../base/error-reason.ts';
import type { StoreFile } from './file.ts';
import type { Maintenance } from './maintenance.ts';

/** Above this, readers or writers of other processes keep the write-ahead log from beginning anew. Bytes and pages. */
const LONG_LOG_BYTES = 256 * 1024 * 1024;
const LONG_LOG_PAGES = 16_384;

interface CheckpointOptions {
  readonly file: StoreFile;
  readonly checkpointPages: number;
  readonly onWarning: (message: string) => void;
}

/** Moves what the write-ahead log has into the file, in a thread, when there is much of it. */
export class Checkpoints {
  readonly #options: CheckpointOptions;
  readonly #maintenance: Maintenance;
  #next: number;
  #hasWarned = false;
  #isHeld = false;

  constructor(options: CheckpointOptions, maintenance: Maintenance) {
    this.#options = options;
    this.#maintenance = maintenance;
    this.#next = options.checkpointPages;
  }

  /** Makes none until `done`. The file would grow by what a killed import left in the log and a start removes again. */
  hold(done: Promise<void>): void {
    this.#isHeld = true;
    void done.then(() => (this.#isHeld = false));
  }

  /**
   * Makes one when it is due. Writers wait meanwhile, so the checkpoint itself waits for no one. Where a reader keeps the log
   * from beginning anew, the next one comes after as many pages again.
   */
  async make(): Promise<void> {
    if (this.#isHeld) return;
    const { file, checkpointPages, onWarning } = this.#options;
    try {
      const pages = file.pagesInLog();
      if (pages < checkpointPages) this.#next = checkpointPages;
      if (pages < this.#next) return;
      this.#next = pages + checkpointPages;
      const kind = pages > LONG_LOG_PAGES ? 'restart' : 'passive';
      await this.#maintenance.run(
        `pragma busy_timeout=0; pragma wal_checkpoint(${kind}); pragma busy_timeout=2000`,
      );
      const bytes = file.logBytes();
      if (bytes > LONG_LOG_BYTES && !this.#hasWarned)
        onWarning(
          `the write-ahead log of the store has ${bytes} bytes: another process may read the file and keep it from beginning anew`,
        );
      this.#hasWarned = bytes > LONG_LOG_BYTES;
    } catch (error) {
      onWarning(`the write-ahead log of the store was not moved into the file: ${reasonOf(error)}`);
    }
  }
}

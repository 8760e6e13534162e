import { reasonOf } from '../../error-reason.ts';
import { storeUnavailable } from '../../errors.ts';
import { diskFull, freeBytes, isDamage, RESERVE_BYTES, storeFault, storeReplaced } from './errors.ts';
import type { StoreFile } from './file.ts';

const LOOK_AT_DISK_MS = 250;
/** How often to look whether the file is still in its place. Milliseconds. */
const LOOK_AT_PLACE_MS = 1_000;

interface GuardOptions {
  readonly file: StoreFile;
  readonly directory: string;
  readonly onWarning: (message: string) => void;
}

/** Says whether the file may be read and written: it is open, in its place and whole, and its disk has space. */
export class FileGuard {
  readonly #options: GuardOptions;
  readonly #looking: NodeJS.Timeout;
  #isOpen = true;
  #isReplaced = false;
  #damage: unknown = null;
  #diskLookedAt = -Infinity;

  constructor(options: GuardOptions) {
    this.#options = options;
    this.#looking = setInterval(() => {
      try {
        this.#assertInPlace();
      } catch {
        if (this.#isReplaced) clearInterval(this.#looking); // it stays so. Else the look failed, and the next one says more
      }
    }, LOOK_AT_PLACE_MS).unref();
  }

  /** Throws when the file cannot be read. */
  check(): void {
    if (!this.#isOpen) throw storeUnavailable(new Error('the embedded store is closed'));
    if (this.#isReplaced) throw storeReplaced();
  }

  /** Throws when the file cannot be written. `frees`: it frees space, so that little must be free. */
  checkWritable(frees: boolean): void {
    const { directory } = this.#options;
    this.check();
    this.#assertInPlace();
    if (frees) return;
    const now = performance.now();
    if (now - this.#diskLookedAt < LOOK_AT_DISK_MS) return;
    if (freeBytes(directory) < RESERVE_BYTES) throw diskFull(directory);
    this.#diskLookedAt = now;
  }

  /** Throws when the file is damaged as far as it was read until now. */
  assertWhole(): void {
    if (this.#damage !== null) throw this.#damage as Error;
  }

  /** Makes durable what was committed. */
  async sync(): Promise<void> {
    await this.#options.file.sync();
    this.#assertInPlace(); // else what was written is in a file that no one will open again
  }

  /** Translates an error of SQLite, and remembers damage. */
  faultOf(error: unknown): unknown {
    const { directory, onWarning } = this.#options;
    const fault = storeFault(error, directory);
    if (isDamage(error) && this.#damage === null) {
      this.#damage = fault;
      onWarning(`the file of the store is damaged: ${reasonOf(error)}; restore a backup`);
    }
    return fault;
  }

  /** Refuses all looks from now on. */
  close(): void {
    this.#isOpen = false;
    clearInterval(this.#looking);
  }

  /** Closes the file, behind `close`. */
  async closeFile(): Promise<void> {
    const { file, onWarning } = this.#options;
    try {
      await file.close(this.#isReplaced ? 'replaced' : 'stopped');
    } catch (error) {
      onWarning(`the clean stop of the store was not noted: ${reasonOf(error)}`);
    }
  }

  /** Throws, and refuses everything from then on, when another file is in the place of the store's. */
  #assertInPlace(): void {
    const { file, onWarning } = this.#options;
    if (!this.#isReplaced && file.isInPlace()) return;
    if (!this.#isReplaced)
      onWarning(
        `${file.path} or its log was replaced or removed while this process has it open: nothing is read or written until it is started again; stop every process before you restore a backup`,
      );
    this.#isReplaced = true;
    throw storeReplaced();
  }
}

import { unwatchFile, watchFile } from 'node:fs';
import type { Log } from '../log.ts';
import { readKeysFile } from './keys-file.ts';
import type { Key, Keyring } from './keys.ts';

/** How often the file is looked at. Milliseconds. */
const LOOK_MS = 2_000;

export interface KeysWatchOptions {
  readonly path: string;
  readonly keyring: Keyring;
  /** Resolves with the faults of keys that only the server can tell, such as resources that it does not have. */
  readonly check: (keys: readonly Key[]) => Promise<readonly string[]>;
  readonly log: Log;
}

/**
 * Reads API_KEYS_FILE again when it changes. A file with faults changes nothing: the keys of before stay, and the log
 * says why.
 */
export class KeysWatch {
  readonly #options: KeysWatchOptions;
  readonly #changed = () => void this.reload();
  /** One reading follows another, so that the last state of the file counts. */
  #reading: Promise<unknown> = Promise.resolve();

  constructor(options: KeysWatchOptions) {
    this.#options = options;
    watchFile(options.path, { interval: LOOK_MS, persistent: false }, this.#changed);
  }

  /** Reads the file now. Resolves with whether its keys are now those of the server. Never rejects. */
  reload(): Promise<boolean> {
    const next = this.#reading.then(() => this.#read());
    this.#reading = next;
    return next;
  }

  async close(): Promise<void> {
    unwatchFile(this.#options.path, this.#changed);
    await this.#reading;
  }

  async #read(): Promise<boolean> {
    const { path, keyring, check, log } = this.#options;
    try {
      const { keys, faults } = readKeysFile(path);
      const all = faults.length > 0 ? faults : await check(keys);
      if (all.length > 0) {
        log.error({ faults: all }, 'API_KEYS_FILE has faults: the keys that were read before stay valid');
        return false;
      }
      keyring.replace(keys);
      log.info({ keys: keys.length }, 'API_KEYS_FILE was read again');
      return true;
    } catch (error) {
      log.error(
        { err: error },
        'API_KEYS_FILE could not be checked: the keys that were read before stay valid',
      );
      return false;
    }
  }
}

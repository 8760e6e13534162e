import { unwatchFile, watchFile } from 'node:fs';
import type { Log } from '../log.ts';
import { readKeysFile } from './keys-file.ts';
import type { Key, Keyring } from './keys.ts';

/** How often the file is looked at. Milliseconds. */
const LOOK_MS = 2_000;

export interface KeysWatchOptions {
  readonly path: string;
  readonly keyring: Keyring;
  /** Resolves with the faults of keys that only the server can find, such as resources that it does not have. */
  readonly check: (keys: readonly Key[]) => Promise<readonly string[]>;
  readonly log: Log;
}

export interface KeysWatch {
  /** Reads the file now. Resolves with whether its keys are now those of the server. Never rejects. */
  reload(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * Reads API_KEYS_FILE again when it changes. A file with faults changes nothing: the keys of before stay, and the log
 * says why.
 */
export function watchKeys({ path, keyring, check, log }: KeysWatchOptions): KeysWatch {
  const read = async () => {
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
  };
  // One reading follows another, so that the last state of the file counts.
  let reading: Promise<boolean> = Promise.resolve(true);
  const reload = () => (reading = reading.then(read));
  const changed = () => void reload();
  watchFile(path, { interval: LOOK_MS, persistent: false }, changed);
  return {
    reload,
    close: async () => {
      unwatchFile(path, changed);
      await reading;
    },
  };
}

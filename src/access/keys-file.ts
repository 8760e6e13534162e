import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { codeOf } from '../base/error-reason.ts';
import { parseJsonKeys, type KeysFile } from './keys-json.ts';
import type { Key, Keyring } from './keys.ts';
import type { Log } from '../base/log.ts';

/** Reads API_KEYS_FILE. Faults name the setting and the place, but never show what stands there: it may be a key. */
export function readKeysFile(path: string): KeysFile & { readonly isUnread?: boolean } {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = String(codeOf(error));
    const faults = [`API_KEYS_FILE must be a readable file; got ${code} for "${path}"`];
    return { keys: [], faults, isUnread: true };
  }
  return parseKeys(text);
}

/** Parses the content of the file: a JSON object, or lines. */
export function parseKeys(content: string): KeysFile {
  const text = content.replace(/^\ufeff/, '');
  const { keys, faults } = text.trimStart().startsWith('{') ? parseJsonKeys(text) : parseLines(text);
  if (keys.length > 0 || faults.length > 0) return { keys, faults };
  return {
    keys,
    faults: ['API_KEYS_FILE must have at least one key; otherwise every request is refused'],
  };
}

/** Parses lines of a name and a SHA-256 in hex: keys without other members. `#` begins a comment; empty lines are ignored. */
function parseLines(text: string): KeysFile {
  const lines = text.split('\n').map((line) => line.replace(/#.*/, '').trim());
  const numbers = [...lines.keys()].filter((n) => lines[n] !== '');
  const given = numbers.map((n) => {
    const [, name = '', hex = ''] = /^(\S*)\s*(.*)$/.exec(lines[n] ?? '') ?? [];
    return { name, sha256: hex };
  });
  const { keys, faults } = parseJsonKeys(JSON.stringify({ keys: given }));
  const inLines = (fault: string) =>
    fault.replaceAll(
      /\/keys\/(\d+)(\/?)/g,
      (_, n: string, more: string) => `line ${(numbers[Number(n)] ?? 0) + 1}${more && ' '}`,
    );
  return { keys, faults: faults.map(inLines) };
}

/** How often the file is looked at. Milliseconds. */
const LOOK_MS = 2_000;

interface KeysWatchOptions {
  readonly path: string;
  readonly keyring: Keyring;
  /** Resolves with the faults of keys that only the server can find, such as resources that it does not have. */
  readonly check: (keys: readonly Key[]) => Promise<readonly string[]>;
  readonly log: Log;
}

/** Reads API_KEYS_FILE again when it changes. With faults the keys of before stay, and the log says why. */
export function watchKeys({ path, keyring, check, log }: KeysWatchOptions) {
  let again: NodeJS.Timeout | undefined;
  let faultsNow = 0;
  const read = async () => {
    clearTimeout(again);
    try {
      const { keys, faults, isUnread } = readKeysFile(path);
      // It may have other keys than those of before, such as one less, and no change of it may follow.
      if (isUnread) again = setTimeout(changed, LOOK_MS).unref();
      const all = faults.length > 0 ? faults : await check(keys);
      faultsNow = all.length;
      if (all.length > 0) {
        log.error({ faults: all }, 'API_KEYS_FILE has faults: the keys that were read before stay valid');
        return false;
      }
      keyring.replace(keys);
      log.info({ keys: keys.length }, 'API_KEYS_FILE was read again');
      return true;
    } catch (error) {
      faultsNow = 1;
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
    /** Reads the file now. Resolves with whether its keys are now those of the server. Never rejects. */
    reload,
    /** How many faults the file had when it was read last. */
    get faults(): number {
      return faultsNow;
    },
    close: async (): Promise<void> => {
      unwatchFile(path, changed);
      await reading;
      clearTimeout(again);
    },
  };
}

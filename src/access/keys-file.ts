import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { codeOf } from '../error-reason.ts';
import { parseJsonKeys, type KeysRead } from './keys-json.ts';
import { sha256, type Key, type Keyring } from './keys.ts';
import type { Log } from '../log.ts';
import { ALL_RIGHTS } from './rights.ts';

/** What a key is called in logs and limits. */
export const NAME = /^[\w.-]{1,64}$/;
const DIGEST = /^[0-9a-f]{64}$/i;
const DIGEST_OF_NOTHING = sha256('');

/**
 * Reads API_KEYS_FILE. Faults name the setting and the place. They never show the content of the place, because it may
 * be a key.
 */
export function readKeysFile(path: string): KeysRead {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = String(codeOf(error));
    return { keys: [], faults: [`API_KEYS_FILE must be a readable file; got ${code} for "${path}"`] };
  }
  return parseKeys(text);
}

/** Parses the content of the file: a JSON object, or lines. */
export function parseKeys(content: string): KeysRead {
  const text = content.replace(/^\ufeff/, '');
  const { keys, faults } = text.trimStart().startsWith('{') ? parseJsonKeys(text) : parseLines(text);
  if (keys.length > 0 || faults.length > 0) return { keys, faults };
  return {
    keys,
    faults: ['API_KEYS_FILE must have at least one key; otherwise every request is refused'],
  };
}

/** Parses lines of a name and a SHA-256 in hex. `#` begins a comment; empty lines are ignored. */
function parseLines(text: string): KeysRead {
  const keys: Key[] = [];
  const faults: string[] = [];
  const lineOf = new Map<string, number>();
  for (const [index, line] of text.split('\n').entries()) {
    const words = line.replace(/#.*/, '').trim().split(/\s+/);
    const [name = '', hex = ''] = words;
    if (name === '') continue;
    const digest = hex.toLowerCase();
    const fault = (expected: string) => faults.push(`API_KEYS_FILE, line ${index + 1}: ${expected}`);
    const before = lineOf.get(digest);
    if (words.length !== 2) fault('must have a name and the SHA-256 of the key');
    else if (!NAME.test(name)) fault('the name must have 1 to 64 characters of A-Z a-z 0-9 . _ -');
    else if (!DIGEST.test(digest)) fault('the SHA-256 must have 64 hexadecimal digits');
    else if (digest === DIGEST_OF_NOTHING) fault('this is the SHA-256 of an empty key');
    else if (before !== undefined) fault(`line ${before} has the same key`);
    else keys.push({ name, digest: Buffer.from(digest, 'hex'), rights: ALL_RIGHTS, expires: Infinity });
    lineOf.set(digest, index + 1);
  }
  return { keys, faults };
}

/** How often the file is looked at. Milliseconds. */
const LOOK_MS = 2_000;

export interface KeysWatchOptions {
  readonly path: string;
  readonly keyring: Keyring;
  /** Resolves with the faults of keys that only the server can find, such as resources that it does not have. */
  readonly check: (keys: readonly Key[]) => Promise<readonly string[]>;
  readonly log: Log;
}

/**
 * Reads API_KEYS_FILE again when it changes. A file with faults changes nothing: the keys of before stay, and the log
 * says why.
 */
export function watchKeys({ path, keyring, check, log }: KeysWatchOptions) {
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
    /** Reads the file now. Resolves with whether its keys are now those of the server. Never rejects. */
    reload,
    close: async (): Promise<void> => {
      unwatchFile(path, changed);
      await reading;
    },
  };
}

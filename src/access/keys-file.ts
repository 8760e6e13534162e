import { readFileSync } from 'node:fs';
import { codeOf } from '../error-reason.ts';
import { parseJsonKeys } from './keys-json.ts';
import { sha256, type Key } from './keys.ts';
import { ALL_RIGHTS } from './rights.ts';

export interface KeysRead {
  readonly keys: readonly Key[];
  readonly faults: readonly string[];
}

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

import { hash, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { AppError } from '../errors.ts';
import { codeOf } from '../thrown.ts';

/** A line of API_KEYS_FILE. Two lines with the same name are two keys of one client: the old one and its successor. */
export interface Key {
  readonly name: string;
  /** SHA-256 of the key. */
  readonly digest: Buffer;
}

export interface KeysRead {
  readonly keys: readonly Key[];
  readonly faults: readonly string[];
}

const NAME = /^[\w.-]{1,64}$/;
const DIGEST = /^[0-9a-f]{64}$/i;
const DIGEST_OF_NOTHING = sha256('');

/**
 * Reads API_KEYS_FILE. Faults name the setting and the line. They never show the content of the line, because it may
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

/** Parses lines of a name and a SHA-256 in hex. `#` begins a comment; empty lines are ignored. */
export function parseKeys(text: string): KeysRead {
  const keys: Key[] = [];
  const faults: string[] = [];
  const lineOf = new Map<string, number>();
  for (const [index, line] of text
    .replace(/^\ufeff/, '')
    .split('\n')
    .entries()) {
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
    else keys.push({ name, digest: Buffer.from(digest, 'hex') });
    lineOf.set(digest, index + 1);
  }
  if (keys.length === 0 && faults.length === 0)
    faults.push('API_KEYS_FILE must have at least one key; otherwise every request is refused');
  return { keys, faults };
}

/**
 * Returns the name of the client whose key an Authorization header contains. Throws AppError `unauthorized`
 * otherwise.
 */
export type Authenticate = (authorization: string | undefined) => string;

/**
 * Authenticates by Bearer keys (RFC 6750). A key is looked up by its SHA-256. The time of a lookup can reveal
 * something about digests only, and choosing a digest would mean breaking SHA-256. The digests are still compared in
 * constant time, so that the internals of the lookup never decide who is authenticated.
 */
export function createAuthenticate(keys: readonly Key[]): Authenticate {
  const byDigest = new Map(keys.map((key) => [key.digest.toString('hex'), key]));
  return (authorization) => {
    if (authorization === undefined) throw unauthorized(false);
    // The scheme in any case, then one key of token68 (RFC 9110, 11.2). Two headers arrive joined by a comma and are
    // no key.
    const [, scheme, key] = /^(\S+) *(.*)$/.exec(authorization.trim()) ?? [];
    if (scheme?.toLowerCase() !== 'bearer') throw unauthorized(false);
    if (key === undefined || !/^[\w\-.~+/]+=*$/.test(key)) throw unauthorized(true);
    const digest = sha256(key);
    const found = byDigest.get(digest);
    if (found === undefined || !timingSafeEqual(found.digest, Buffer.from(digest, 'hex')))
      throw unauthorized(true);
    return found.name;
  };
}

/**
 * 401 with the challenge of RFC 6750, section 3. It names an error only when a key was sent. No text contains the
 * key.
 */
function unauthorized(given: boolean): AppError {
  const detail = given
    ? 'The API key in the Authorization header is not valid.'
    : 'The Authorization header must be "Bearer" and an API key.';
  return new AppError('unauthorized', detail, {
    headers: { 'www-authenticate': `Bearer realm="sluice"${given ? ', error="invalid_token"' : ''}` },
  });
}

function sha256(text: string): string {
  return hash('sha256', text, 'hex');
}

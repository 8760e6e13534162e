import { hash, timingSafeEqual } from 'node:crypto';
import { AppError } from '../errors.ts';
import type { Policy } from './policy.ts';
import { stillAllow, type Action, type Rights } from './rights.ts';

/** A key of API_KEYS_FILE. Two keys with the same name are of one client: the old one and its successor. */
export interface Key {
  readonly name: string;
  /** SHA-256 of the key. */
  readonly digest: Buffer;
  readonly rights: Rights;
  /** When the key ends, in milliseconds since 1970. Infinity: never. */
  readonly expires: number;
  /** Its own limit of requests. Absent: that of the server. */
  readonly rate?: Policy;
  /** Its own limit of open streams. Absent: that of the server. */
  readonly streams?: number;
}

/**
 * Returns the key that an Authorization header contains. Throws AppError `unauthorized` when it contains none that is
 * valid now.
 */
export type Authenticate = (authorization: string | undefined) => Key;

/** What a running answer was begun with: see `Keyring.allows`. */
export interface Begun {
  readonly key: Key;
  readonly action: Action | null;
  readonly resource: string | null;
}

/**
 * The keys that are valid now. Keys are sent as Bearer tokens (RFC 6750). A key is looked up by its SHA-256. The time
 * of a lookup can reveal something about digests only, and choosing a digest would mean breaking SHA-256. The digests
 * are still compared in constant time, so that the internals of the lookup never decide who is authenticated.
 */
export class Keyring {
  #byDigest: ReadonlyMap<string, Key> = new Map();
  readonly #now: () => number;

  /** `now` is the time in milliseconds since 1970. */
  constructor(keys: readonly Key[], now: () => number = Date.now) {
    this.#now = now;
    this.replace(keys);
  }

  /** From now on these are the keys. */
  replace(keys: readonly Key[]): void {
    this.#byDigest = new Map(keys.map((key) => [key.digest.toString('hex'), key]));
  }

  /** See Authenticate. */
  authenticate(authorization: string | undefined): Key {
    if (authorization === undefined) throw unauthorized(false);
    // The scheme in any case, then one key of token68 (RFC 9110, 11.2). Two headers arrive joined by a comma and are
    // no key.
    const [, scheme, key] = /^(\S+) *(.*)$/.exec(authorization.trim()) ?? [];
    if (scheme?.toLowerCase() !== 'bearer') throw unauthorized(false);
    if (key === undefined || !/^[\w\-.~+/]+=*$/.test(key)) throw unauthorized(true);
    const digest = sha256(key);
    const found = this.#byDigest.get(digest);
    if (!found) throw unauthorized(true);
    if (!timingSafeEqual(found.digest, Buffer.from(digest, 'hex'))) throw unauthorized(true);
    if (this.#now() >= found.expires) throw unauthorized(true);
    return found;
  }

  /** Whether an answer that was begun with a key may go on: the key is still there and still has the right. */
  allows({ key, action, resource }: Begun): boolean {
    const now = this.#byDigest.get(key.digest.toString('hex'));
    if (now?.name !== key.name || this.#now() >= now.expires) return false;
    return now === key || stillAllow(now.rights, key.rights, action, resource);
  }
}

/** The authentication by keys that never change. */
export function createAuthenticate(keys: readonly Key[]): Authenticate {
  const keyring = new Keyring(keys);
  return (authorization) => keyring.authenticate(authorization);
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

export function sha256(text: string): string {
  return hash('sha256', text, 'hex');
}

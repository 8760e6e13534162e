import { hash, timingSafeEqual } from 'node:crypto';
import { AppError } from '../base/errors.ts';
import type { Policy } from './policy.ts';
import { stillAllow, type Right, type Rights } from './rights.ts';

/** A key of API_KEYS_FILE. Two keys with the same name are of one client: the old one and its successor. */
export interface Key {
  readonly name: string;
  /** SHA-256 of the key in hexadecimal, in lower case. */
  readonly digest: string;
  readonly rights: Rights;
  /** When the key ends, in milliseconds since 1970. Infinity: never. */
  readonly expires: number;
  /** Its own limit of requests. Absent: that of the server. */
  readonly rate?: Policy;
  /** Its own limit of open streams. Absent: that of the server. */
  readonly streams?: number;
  /** For the rights of a token: who issued it, as a short text. Absent: a key of API_KEYS_FILE. */
  readonly issuer?: string;
}

/** The key of an Authorization header; a promise for a token to verify. Throws AppError `unauthorized`. */
export type Authenticate = (authorization: string | undefined) => Key | Promise<Key>;

/**
 * The keys that are valid now. Keys are sent as Bearer tokens (RFC 6750). A key is looked up by its SHA-256. The time
 * of a lookup can reveal something about digests only, and choosing a digest would mean breaking SHA-256. The digests
 * are still compared in constant time, so that the internals of the lookup never decide who is authenticated.
 */
export class Keyring {
  #byDigest: ReadonlyMap<string, Key> = new Map();

  constructor(keys: readonly Key[]) {
    this.replace(keys);
  }

  replace(keys: readonly Key[]): void {
    this.#byDigest = new Map(keys.map((key) => [key.digest, key]));
  }

  /** Returns the key of an Authorization header. Throws AppError `unauthorized`. */
  authenticate(authorization: string | undefined): Key {
    const found = this.find(sha256(credentialOf(authorization)));
    if (!found) throw unauthorized(NOT_VALID);
    return found;
  }

  /** Returns the key with this SHA-256; null when there is none. Throws AppError `unauthorized` when it has ended. */
  find(digest: string): Key | null {
    const found = this.#byDigest.get(digest);
    if (!found || !timingSafeEqual(Buffer.from(found.digest), Buffer.from(digest))) return null;
    if (!isCurrent(found)) throw unauthorized(NOT_VALID);
    return found;
  }

  /** Whether an answer that was begun with a key may go on: the key is still there and still has the right. */
  allows(key: Key, right: Right | undefined, resource: string | null): boolean {
    const now = this.#byDigest.get(key.digest);
    if (now?.name !== key.name || !isCurrent(now)) return false;
    return now === key || stillAllow(now.rights, key.rights, right, resource);
  }
}

export function isCurrent({ expires }: Pick<Key, 'expires'>): boolean {
  return Date.now() < expires;
}

const NOT_VALID = 'The API key in the Authorization header is not valid.';
const MISSING = 'The Authorization header must be "Bearer" and an API key.';

/** Returns the key or token that an Authorization header contains. Throws AppError `unauthorized`. */
export function credentialOf(authorization: string | undefined): string {
  if (authorization === undefined) throw unauthorized(MISSING, false);
  // The scheme in any case, then one key of token68 (RFC 9110, 11.2). Two headers arrive joined by a comma: no key.
  const [, key] = /^bearer +([\w\-.~+/]+=*)$/i.exec(authorization.trim()) ?? [];
  if (key !== undefined) return key;
  throw /^\s*bearer(?!\S)/i.test(authorization) ? unauthorized(NOT_VALID) : unauthorized(MISSING, false);
}

/** 401 with the challenge of RFC 6750, 3, which names an error only when a key was sent. No text contains the key. */
export function unauthorized(detail: string, given = true): AppError {
  return new AppError('unauthorized', detail, {
    headers: { 'www-authenticate': `Bearer realm="sluice"${given ? ', error="invalid_token"' : ''}` },
  });
}

export function sha256(text: string): string {
  return hash('sha256', text, 'hex');
}

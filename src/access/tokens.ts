import { AppError } from '../errors.ts';
import { parseJson, type JsonBody } from '../input/body-json.ts';
import { DUPLICATE } from '../input/json-scan.ts';
import { NO_RIGHTS, readGrant, type Grant } from './grants.ts';
import type { KeyServer } from './key-server.ts';
import { sha256, unauthorized, type Key } from './keys.ts';
import type { Rights } from './rights.ts';
import {
  checkToken,
  LEEWAY_SECONDS,
  NOT_VALID,
  TokenRefused,
  UnknownSigningKey,
  type SigningKeys,
} from './token-check.ts';
import type { TokenSettings } from './token-settings.ts';

/** The most characters of a token. A request's head may have 16 KiB. */
const LONGEST = 8 * 1024;
/** About 1 KB each. */
const REMEMBERED = 8192;
const MOST_VALUES = 8192;
/** Three parts in base64url (RFC 7515, 7.1). An encrypted token has five. */
const FORM = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** A subject that is shown as it is. Another one is shown as its hash. */
const SUBJECT = /^[\w.@|:+-]{1,64}$/;

export interface TokensOptions {
  readonly settings: TokenSettings;
  readonly keyServer: Pick<KeyServer<SigningKeys>, 'keys' | 'fetch'>;
  /**
   * Resolves with the faults of rights, such as resources that the server does not have. They are for the client, so they
   * name nothing that only the operator knows.
   */
  readonly faultsOf: (rights: Rights) => Promise<readonly string[]>;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** The number of verified tokens in one generation. Two are kept: the current one and the previous one. */
  readonly remembered?: number;
}

/**
 * Turns tokens into keys: JSON Web Tokens (RFC 7519) signed with a key of the key server. A verified token is
 * remembered by its SHA-256 until it ends, so that a request with it costs a look-up.
 */
export class Tokens {
  readonly #options: TokensOptions;
  readonly #issuer: string;
  readonly #now: () => number;
  #recent = new Map<string, Key>();
  #older = this.#recent;
  /** The signing keys that the remembered tokens were verified with. */
  #keys: SigningKeys | null = null;
  /** Tokens that are being verified: requests with the same one share the work. */
  readonly #pending = new Map<string, Promise<Key>>();

  constructor(options: TokensOptions) {
    this.#options = options;
    this.#issuer = sha256(options.settings.issuer).slice(0, 16);
    this.#now = options.now ?? (() => Date.now());
  }

  /**
   * Returns the key that a token stands for, at once where it is remembered. `digest`: its SHA-256. Throws or rejects
   * with AppError `unauthorized`, or `key-server-unavailable`.
   */
  authenticate(token: string, digest: string): Key | Promise<Key> {
    const known = this.remembered(digest);
    if (known) return known;
    const pending = this.#pending.get(digest);
    if (pending) return pending;
    if (token.length > LONGEST) throw refusedToken(`A token may have at most ${LONGEST} characters.`);
    if (!FORM.test(token)) throw unauthorized('The key or token in the Authorization header is not valid.');
    const verifying = this.#verify(token, digest).finally(() => this.#pending.delete(digest));
    this.#pending.set(digest, verifying);
    return verifying;
  }

  /** Returns the key of a token that is remembered; null when it is not. Throws AppError `unauthorized` when it has ended. */
  remembered(digest: string): Key | null {
    this.#forgetWithKeys();
    const known = this.#recent.get(digest) ?? this.#older.get(digest);
    if (!known) return null;
    if (!this.isValid(known)) throw unauthorized('The token has expired.');
    return known;
  }

  /** Whether a token's key has not ended. */
  isValid({ expires }: Pick<Key, 'expires'>): boolean {
    return this.#now() < expires;
  }

  /** A key that the key server no longer publishes may have been stolen, so tokens are verified again. */
  #forgetWithKeys(): void {
    const { keys } = this.#options.keyServer;
    if (keys === this.#keys) return;
    this.#keys = keys;
    this.#recent = new Map();
    this.#older = this.#recent;
  }

  async #verify(token: string, digest: string): Promise<Key> {
    try {
      assertPlain(partOf(token, 0));
      const payload = partOf(token, 1);
      assertPlain(payload);
      const keys = await this.#check(token);
      const key = await this.#keyOf(payload, digest);
      this.#forgetWithKeys();
      if (keys === this.#keys) this.#remember(digest, key);
      return key;
    } catch (error) {
      if (error instanceof TokenRefused || error instanceof UnknownSigningKey)
        throw refusedToken(error.message);
      throw error;
    }
  }

  /** Verifies a token, with fetched keys where the known ones do not have its own. Resolves with the keys. */
  async #check(token: string): Promise<SigningKeys> {
    const { keyServer, settings } = this.#options;
    const known = keyServer.keys ?? (await keyServer.fetch());
    if (known === null) throw new AppError('key-server-unavailable', UNAVAILABLE);
    try {
      await checkToken(token, known, settings);
      return known;
    } catch (error) {
      const fetched = error instanceof UnknownSigningKey ? await keyServer.fetch() : known;
      if (fetched === null || fetched === known) throw error;
      await checkToken(token, fetched, settings);
      return fetched;
    }
  }

  async #keyOf(payload: JsonBody, digest: string): Promise<Key> {
    const { claim, fallback } = this.#options.settings;
    const claims = payload.value as Readonly<Record<string, unknown>>;
    const { sub, exp } = claims;
    if (typeof sub !== 'string' || sub === '') throw new TokenRefused('The token has no claim sub.');
    const given = Object.hasOwn(claims, claim);
    const { grant, faults } = given
      ? readGrant(claims[claim], [claim], payload)
      : { grant: fallback ?? NO_RIGHTS, faults: [] };
    const all = faults.length > 0 ? faults : await this.#options.faultsOf(grant.rights);
    if (all.length > 0) throw new TokenRefused(`The claim ${claim} has faults: ${all.join('; ')}.`);
    const key = { ...grant, ...named(sub, digest, this.#issuer), expires: endOf(Number(exp), grant) };
    if (!this.isValid(key)) throw new TokenRefused('The token has expired.');
    return key;
  }

  #remember(digest: string, key: Key): void {
    const { remembered = REMEMBERED } = this.#options;
    if (this.#recent.size >= remembered) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(digest, key);
  }
}

const UNAVAILABLE =
  'The keys that sign tokens could not be fetched, so no token can be verified. Try again later.';

function named(sub: string, digest: string, issuer: string): Pick<Key, 'name' | 'digest' | 'issuer'> {
  const name = SUBJECT.test(sub) ? sub : `~${sha256(sub).slice(0, 32)}`;
  return { name, digest: Buffer.from(digest, 'hex'), issuer };
}

function endOf(exp: number, { expires }: Grant): number {
  return Math.min((exp + LEEWAY_SECONDS) * 1000, expires);
}

/** A part of a token as JSON. Throws TokenRefused where it is none. */
function partOf(token: string, n: number): JsonBody {
  try {
    return parseJson(Buffer.from(token.split('.')[n] ?? '', 'base64url'), MOST_VALUES);
  } catch (error) {
    throw new TokenRefused(NOT_VALID, { cause: error });
  }
}

/** Two readers may read a name that is given twice differently (RFC 8725, 2.4), so no such token is read. */
function assertPlain({ value, faults }: JsonBody): void {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject || faults.some(({ detail }) => detail === DUPLICATE)) throw new TokenRefused(NOT_VALID);
}

/** 401 that says in the challenge, too, what is wrong (RFC 6750, 3). */
function refusedToken(detail: string): AppError {
  // A quoted string of the challenge has neither quotes nor backslashes.
  const description = detail.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, "'").slice(0, 200);
  return new AppError('unauthorized', detail, {
    headers: {
      'www-authenticate': `Bearer realm="sluice", error="invalid_token", error_description="${description}"`,
    },
  });
}

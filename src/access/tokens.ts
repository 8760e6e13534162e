import { parseJson, type JsonBody } from '../input/body-json.ts';
import { DUPLICATE } from '../input/json-scan.ts';
import { claimOf } from './claims.ts';
import { NO_RIGHTS, readGrant, type Grant } from './keys-json.ts';
import { isCurrent, sha256, unauthorized, type Key } from './keys.ts';
import { RecentMap } from '../base/recent-map.ts';
import type { Rights } from './rights.ts';
import { LEEWAY_SECONDS, NOT_VALID, refusedToken, type TokenCheck } from './token-check.ts';
import type { TokenSettings } from './token-settings.ts';

/** The most characters of a token. A request's head may have 16 KiB. */
const LONGEST = 8 * 1024;
/** The verified tokens in one generation, of which two are kept. About 1 KB each. */
const REMEMBERED = 8192;
const MOST_VALUES = 8192;
/** Three parts in base64url (RFC 7515, 7.1). An encrypted token has five. */
const FORM = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** A subject that is shown as it is. Another one is shown as its hash. */
const SUBJECT = /^[\w.@|:+-]{1,64}$/;

export interface TokensOptions {
  readonly settings: TokenSettings;
  readonly check: Pick<TokenCheck, 'fetchedAt' | 'verify'>;
  /** The faults of rights, such as unknown resources. For the client: they name nothing that only the operator knows. */
  readonly faultsOf: (rights: Rights) => Promise<readonly string[]>;
}

/**
 * Turns tokens into keys: JSON Web Tokens (RFC 7519) signed with a key of the key server. A verified token is
 * remembered by its SHA-256 until it ends or keys are fetched, so that a request with it costs a look-up.
 */
export class Tokens {
  readonly #options: TokensOptions;
  readonly #issuer: string;
  readonly #known = new RecentMap<Key>(REMEMBERED);
  /** When the keys were fetched that the remembered tokens were verified with. */
  #fetchedAt: number | undefined;
  /** Tokens that are being verified: requests with the same one share the work. */
  readonly #pending = new Map<string, Promise<Key>>();

  constructor(options: TokensOptions) {
    this.#options = options;
    this.#issuer = sha256(options.settings.issuer).slice(0, 16);
  }

  /** The key of a token with this SHA-256. Throws or rejects with AppError `unauthorized` or `key-server-unavailable`. */
  authenticate(token: string, digest: string): Key | Promise<Key> {
    const key = this.#remembered(digest) ?? this.#pending.get(digest);
    if (key) return key;
    if (token.length > LONGEST) throw refusedToken(`A token may have at most ${LONGEST} characters.`);
    if (!FORM.test(token)) throw unauthorized('The key or token in the Authorization header is not valid.');
    const verifying = this.#verify(token, digest).finally(() => this.#pending.delete(digest));
    this.#pending.set(digest, verifying);
    return verifying;
  }

  /** Returns the key of a token that is remembered; null when it is not. Throws AppError `unauthorized` when it has ended. */
  #remembered(digest: string): Key | null {
    this.#forgetOlderKeys();
    const key = this.#known.get(digest);
    if (!key) return null;
    if (!isCurrent(key)) throw unauthorized('The token has expired.');
    return key;
  }

  async #verify(token: string, digest: string): Promise<Key> {
    const { check } = this.#options;
    sectionOf(token, 0);
    const payload = sectionOf(token, 1);
    const before = check.fetchedAt;
    await check.verify(token);
    const key = await this.#keyOf(payload, digest);
    this.#forgetOlderKeys();
    if (before === this.#fetchedAt) this.#known.set(digest, key);
    return key;
  }

  /** A key that the key server no longer publishes may have been stolen, so tokens are verified again. */
  #forgetOlderKeys(): void {
    const { fetchedAt } = this.#options.check;
    if (fetchedAt === this.#fetchedAt) return;
    this.#fetchedAt = fetchedAt;
    this.#known.clear();
  }

  async #keyOf(payload: JsonBody, digest: string): Promise<Key> {
    const { settings, faultsOf } = this.#options;
    const claims = payload.value as Readonly<Record<string, unknown>>;
    const { sub, exp } = claims;
    if (typeof sub !== 'string' || sub === '') throw refusedToken('The token has no claim sub.');
    const { grant, faults } = grantIn(payload, claims, settings);
    const all = faults.length > 0 ? faults : await faultsOf(grant.rights);
    if (all.length > 0) throw refusedToken(`The claim ${settings.claim} has faults: ${all.join('; ')}.`);
    const key: Key = {
      ...grant,
      name: SUBJECT.test(sub) ? sub : `~${sha256(sub).slice(0, 32)}`,
      digest,
      issuer: this.#issuer,
      expires: Math.min((Number(exp) + LEEWAY_SECONDS) * 1000, grant.expires),
    };
    if (!isCurrent(key)) throw refusedToken('The token has expired.');
    return key;
  }
}

/** What a token grants: by its claim, which has rights or names roles, or by JWT_DEFAULT. */
function grantIn(
  payload: JsonBody,
  claims: Readonly<Record<string, unknown>>,
  { claim, roles, fallback }: TokenSettings,
): { readonly grant: Grant; readonly faults: readonly string[] } {
  const otherwise = { grant: fallback ?? NO_RIGHTS, faults: [] };
  const found = claimOf(claims, claim);
  if (found === null) return otherwise;
  const { value } = found;
  if (!Array.isArray(value) || roles.size === 0) return readGrant(value, found.at, payload);
  for (const [role, grant] of roles) if (value.includes(role)) return { grant, faults: [] };
  return otherwise;
}

/**
 * A part of a token as JSON. Throws AppError `unauthorized` unless it is an object. Two readers may read a name that is
 * given twice differently (RFC 8725, 2.4), so no such token is read.
 */
function sectionOf(token: string, n: number): JsonBody {
  let part: JsonBody;
  try {
    part = parseJson(Buffer.from(token.split('.')[n] ?? '', 'base64url'), MOST_VALUES);
  } catch (error) {
    throw refusedToken(NOT_VALID, error);
  }
  const { value, faults } = part;
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject || faults.some(({ detail }) => detail === DUPLICATE)) throw refusedToken(NOT_VALID);
  return part;
}

import { parseJson, type JsonBody } from '../input/body-json.ts';
import { DUPLICATE } from '../input/json-scan.ts';
import { NO_RIGHTS, readGrant } from './keys-json.ts';
import { isCurrent, sha256, unauthorized, type Key } from './keys.ts';
import { RecentMap } from '../recent-map.ts';
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

export type Tokens = ReturnType<typeof createTokens>;

/**
 * Turns tokens into keys: JSON Web Tokens (RFC 7519) signed with a key of the key server. A verified token is
 * remembered by its SHA-256 until it ends or keys are fetched, so that a request with it costs a look-up.
 */
export function createTokens({ settings: { issuer, claim, fallback }, check, faultsOf }: TokensOptions) {
  const issuerHash = sha256(issuer).slice(0, 16);
  const known = new RecentMap<Key>(REMEMBERED);
  /** When the keys were fetched that the remembered tokens were verified with. */
  let fetchedAt: number | undefined;
  /** Tokens that are being verified: requests with the same one share the work. */
  const pending = new Map<string, Promise<Key>>();

  /** A key that the key server no longer publishes may have been stolen, so tokens are verified again. */
  const forgetOlderKeys = (): void => {
    if (check.fetchedAt === fetchedAt) return;
    fetchedAt = check.fetchedAt;
    known.clear();
  };

  const keyOf = async (payload: JsonBody, digest: string): Promise<Key> => {
    const claims = payload.value as Readonly<Record<string, unknown>>;
    const { sub, exp } = claims;
    if (typeof sub !== 'string' || sub === '') throw refusedToken('The token has no claim sub.');
    const { grant, faults } = Object.hasOwn(claims, claim)
      ? readGrant(claims[claim], [claim], payload)
      : { grant: fallback ?? NO_RIGHTS, faults: [] };
    const all = faults.length > 0 ? faults : await faultsOf(grant.rights);
    if (all.length > 0) throw refusedToken(`The claim ${claim} has faults: ${all.join('; ')}.`);
    const key: Key = {
      ...grant,
      name: SUBJECT.test(sub) ? sub : `~${sha256(sub).slice(0, 32)}`,
      digest,
      issuer: issuerHash,
      expires: Math.min((Number(exp) + LEEWAY_SECONDS) * 1000, grant.expires),
    };
    if (!isCurrent(key)) throw refusedToken('The token has expired.');
    return key;
  };

  const verify = async (token: string, digest: string): Promise<Key> => {
    partOf(token, 0);
    const payload = partOf(token, 1);
    const before = check.fetchedAt;
    await check.verify(token);
    const key = await keyOf(payload, digest);
    forgetOlderKeys();
    if (before === fetchedAt) known.set(digest, key);
    return key;
  };

  /** Returns the key of a token that is remembered; null when it is not. Throws AppError `unauthorized` when it has ended. */
  const remembered = (digest: string): Key | null => {
    forgetOlderKeys();
    const key = known.get(digest);
    if (!key) return null;
    if (!isCurrent(key)) throw unauthorized('The token has expired.');
    return key;
  };

  return {
    /** The key of a token with this SHA-256. Throws or rejects with AppError `unauthorized` or `key-server-unavailable`. */
    authenticate: (token: string, digest: string): Key | Promise<Key> => {
      const key = remembered(digest) ?? pending.get(digest);
      if (key) return key;
      if (token.length > LONGEST) throw refusedToken(`A token may have at most ${LONGEST} characters.`);
      if (!FORM.test(token)) throw unauthorized('The key or token in the Authorization header is not valid.');
      const verifying = verify(token, digest).finally(() => pending.delete(digest));
      pending.set(digest, verifying);
      return verifying;
    },
  };
}

/**
 * A part of a token as JSON. Throws AppError `unauthorized` unless it is an object. Two readers may read a name that is
 * given twice differently (RFC 8725, 2.4), so no such token is read.
 */
function partOf(token: string, n: number): JsonBody {
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

import { createPublicKey, type JsonWebKey } from 'node:crypto';
import {
  createLocalJWKSet,
  errors,
  jwtVerify,
  type JSONWebKeySet,
  type JWK,
  type JWTVerifyGetKey,
} from 'jose';

/** The keys that a key server published. */
export type SigningKeys = JWTVerifyGetKey;

/** A token that is refused. The message is for the client. It must help nobody who forges tokens. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused';
}

/** None of the keys known now can have signed the token. */
export class UnknownSigningKey extends Error {
  override readonly name = 'UnknownSigningKey';
}

/** What is said of every token whose issuer is not proved. */
export const NOT_VALID = 'The token in the Authorization header is not valid.';

/** Asymmetric ones only: with an HMAC, whoever knows the published key could sign (RFC 8725, 2.1). */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
/** How far the clocks of issuer and server may differ. Seconds. */
export const LEEWAY_SECONDS = 60;

/** Reads a JSON Web Key Set (RFC 7517, 5). Throws an error that says what is wrong with it. */
export function readSigningKeys(text: string): SigningKeys {
  const set = JSON.parse(text) as JSONWebKeySet;
  const keys = createLocalJWKSet(set);
  if (!set.keys.some(canVerify)) throw new TypeError('the set has no key that can verify a token');
  return keys;
}

function canVerify(key: JWK): boolean {
  const { use = 'sig', alg = 'RS256', key_ops: operations = ['verify'] } = key;
  if (use !== 'sig' || !ALGORITHMS.includes(alg) || !operations.includes('verify')) return false;
  try {
    const { asymmetricKeyType } = createPublicKey({ key: key as JsonWebKey, format: 'jwk' });
    return ['rsa', 'ec', 'ed25519'].includes(asymmetricKeyType ?? '');
  } catch {
    return false; // it is no public key
  }
}

/**
 * Verifies the signature of a token in compact form, then its issuer, audience and times. Rejects with TokenRefused or
 * UnknownSigningKey. Only a token with a valid signature is told more than that it is not valid.
 */
export async function checkToken(
  token: string,
  keys: SigningKeys,
  { issuer, audience }: { readonly issuer: string; readonly audience: string },
): Promise<void> {
  try {
    await jwtVerify(token, keys, {
      issuer,
      audience,
      algorithms: ALGORITHMS,
      clockTolerance: LEEWAY_SECONDS,
      requiredClaims: ['exp', 'sub'],
    });
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) throw new UnknownSigningKey(NOT_VALID);
    throw new TokenRefused(wordsFor(error), { cause: error });
  }
}

function wordsFor(error: unknown): string {
  if (error instanceof errors.JWTExpired) return 'The token has expired.';
  if (!(error instanceof errors.JWTClaimValidationFailed)) return NOT_VALID;
  const { claim, reason } = error;
  if (reason === 'missing') return `The token has no claim ${claim}.`;
  if (reason !== 'check_failed') return `The claim ${claim} of the token is not valid.`;
  if (claim === 'aud') return 'The token is for another audience.';
  if (claim === 'iss') return 'The token is of another issuer.';
  return claim === 'nbf' ? 'The token is not yet valid.' : NOT_VALID;
}

import {
  createRemoteJWKSet,
  customFetch,
  errors,
  jwksCache,
  jwtVerify,
  type ExportedJWKSCache,
  type JWKSCacheInput,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
} from 'jose';
import { AppError } from '../base/errors.ts';
import { codeOf, reasonOf } from '../base/error-reason.ts';
import type { Log } from '../base/log.ts';
import { configurationUrl, keysUrlOf } from './discovery.ts';
import type { TokenSettings } from './token-settings.ts';

/** What is said of every token whose issuer is not proved. It must not help to forge one. */
export const NOT_VALID = 'The token in the Authorization header is not valid.';
/** How far the clocks of issuer and server may differ. Seconds. */
export const LEEWAY_SECONDS = 60;

const UNAVAILABLE =
  'The keys that sign tokens could not be fetched, so no token can be verified. Try again later.';
/** Asymmetric ones only: with an HMAC, anyone who has the published key could sign (RFC 8725, 2.1). */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
/** How long after a fetch an unknown key does not cause another. Milliseconds. */
const COOL_MS = 30_000;
/** The same while no keys are known at all, so that a key server may start after this server. */
const FIRST_COOL_MS = 5_000;
/** How often the keys are fetched without a cause, so that one that was withdrawn is no longer accepted. */
const REFRESH_MS = 10 * 60_000;
const TIMEOUT_MS = 5_000;
/** The most bytes of a key set, without its coding. A key has some hundred. */
const MOST_BYTES = 1_000_000;

/** Checks tokens with the keys that a key server publishes. Known keys are used while the key server is away. */
export class TokenCheck {
  readonly #options: JWTVerifyOptions;
  readonly #log: Log;
  readonly #known: Partial<ExportedJWKSCache> = {};
  readonly #keys: ReturnType<typeof createRemoteJWKSet>;
  readonly #timer: NodeJS.Timeout;
  readonly #issuer: string;
  /** Whether the configuration of the issuer names the keys. It is read whenever they are. */
  readonly #discovers: boolean;
  #triedAt = -Infinity;

  constructor({ url, issuer, audience }: Pick<TokenSettings, 'url' | 'issuer' | 'audience'>, log: Log) {
    this.#options = {
      issuer,
      audience,
      algorithms: ALGORITHMS,
      clockTolerance: LEEWAY_SECONDS,
      requiredClaims: ['exp', 'sub'],
    };
    this.#log = log;
    this.#issuer = issuer;
    this.#discovers = url === null;
    this.#keys = createRemoteJWKSet(url === null ? configurationUrl(issuer) : new URL(url), {
      timeoutDuration: TIMEOUT_MS,
      cooldownDuration: COOL_MS,
      cacheMaxAge: Infinity,
      [jwksCache]: this.#known as JWKSCacheInput,
      [customFetch]: (...request) => this.#fetch(...request),
    });
    this.#timer = setInterval(() => void this.refresh(), REFRESH_MS).unref();
  }

  /** When the known keys were fetched, in milliseconds since 1970. Undefined: none ever were. */
  get fetchedAt(): number | undefined {
    return this.#known.uat;
  }

  /** Fetches the keys. Resolves when they could not be fetched, too: that is logged, and is no error. */
  async refresh(): Promise<void> {
    this.#triedAt = -Infinity;
    try {
      await this.#keys.reload();
    } catch (error) {
      const then = this.fetchedAt === undefined ? 'no token can be verified' : 'the known keys stay valid';
      const setting = this.#discovers ? 'JWT_ISSUER' : 'JWT_JWKS_URL';
      this.#log.warn({ reason: causeOf(error) }, `${setting} gave no keys: ${then}`);
    }
  }

  /**
   * Verifies the signature of a token in compact form, then its issuer, audience and times. Rejects with AppError
   * `unauthorized` or `key-server-unavailable`. Only the error for a token with a valid signature says what is wrong.
   */
  async verify(token: string): Promise<void> {
    try {
      await verifyWithAny(token, this.#keys, this.#options);
    } catch (error) {
      if (this.fetchedAt === undefined) throw new AppError('key-server-unavailable', UNAVAILABLE);
      throw refusedToken(wordsFor(error), error);
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** jose cools down after a success only: without this, each unknown key would ask a key server that is away. */
  async #fetch(url: string, options: RequestInit): Promise<Response> {
    const cool = this.fetchedAt === undefined ? FIRST_COOL_MS : COOL_MS;
    if (Date.now() < this.#triedAt + cool) throw new Error('the key server was asked a moment ago');
    this.#triedAt = Date.now();
    const answer = await wholeOf(await fetch(url, options));
    if (!this.#discovers) return answer;
    if (answer.status !== 200) throw new Error(`the configuration of the issuer has status ${answer.status}`);
    return wholeOf(await fetch(keysUrlOf(await answer.json(), this.#issuer), options));
  }
}

/** The answer of a key server, read to its end before any other code reads it. Rejects beyond MOST_BYTES. */
async function wholeOf(response: Response): Promise<Response> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += (piece as Uint8Array).length;
    if (bytes > MOST_BYTES) throw new Error(`the key server sent more than ${MOST_BYTES} bytes`);
    pieces.push(piece as Uint8Array);
  }
  return response.status === 200 ? new Response(Buffer.concat(pieces)) : response;
}

/** As jwtVerify, but a token without `kid` that several keys fit is tried with each: issuers publish two while they change keys. */
async function verifyWithAny(token: string, keys: JWTVerifyGetKey, options: JWTVerifyOptions): Promise<void> {
  try {
    await jwtVerify(token, keys, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    for await (const key of error) {
      try {
        await jwtVerify(token, key, options);
        return;
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
      }
    }
    throw error;
  }
}

/** `fetch` has the reason of a failure in `cause`. */
function causeOf(error: unknown): string {
  const code = error instanceof Error ? codeOf(error.cause) : undefined;
  return code === undefined ? reasonOf(error) : `${reasonOf(error)}: ${code}`;
}

function wordsFor(error: unknown): string {
  const isProved = error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed;
  return isProved ? `The token is not valid here and now: ${error.message}.` : NOT_VALID;
}

/** 401 that says in the challenge, too, what is wrong (RFC 6750, 3). */
export function refusedToken(detail: string, cause?: unknown): AppError {
  // A quoted string of the challenge has neither quotes nor backslashes.
  const description = detail.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, "'").slice(0, 200);
  return new AppError('unauthorized', detail, {
    headers: {
      'www-authenticate': `Bearer realm="sluice", error="invalid_token", error_description="${description}"`,
    },
    cause,
  });
}

import { readGrantText, type Grant } from './keys-json.ts';

export interface TokenSettings {
  readonly url: string;
  readonly issuer: string;
  readonly audience: string;
  /** The claim that has the rights. */
  readonly claim: string;
  /** The rights of tokens without the claim. null: none. */
  readonly fallback: Grant | null;
}

const TOGETHER = ['JWT_JWKS_URL', 'JWT_ISSUER', 'JWT_AUDIENCE'] as const;
const DEFAULT_CLAIM = 'sluice';

/** Reads the settings whose names begin with JWT_ from an environment. null: tokens are off. */
export function readTokenSettings(given: NodeJS.ProcessEnv): {
  readonly settings: TokenSettings | null;
  readonly faults: readonly string[];
} {
  const faults: string[] = [];
  const missing = TOGETHER.filter((name) => given[name] === undefined);
  const others = [...TOGETHER, 'JWT_CLAIM', 'JWT_DEFAULT'].filter((name) => given[name] !== undefined);
  if (missing.length > 0 && others.length > 0)
    faults.push(
      `${others.join(' and ')} also need${others.length === 1 ? 's' : ''} ${missing.join(' and ')}`,
    );
  const { JWT_JWKS_URL: url, JWT_ISSUER: issuer, JWT_AUDIENCE: audience, JWT_DEFAULT: text } = given;
  if (url !== undefined && !URL.canParse(url)) faults.push('JWT_JWKS_URL must be a URL');
  const fallback = text === undefined ? null : readGrantText(text);
  faults.push(...(fallback?.faults ?? []).map((fault) => `JWT_DEFAULT ${fault}`));
  if (url === undefined || issuer === undefined || audience === undefined) return { settings: null, faults };
  const claim = given.JWT_CLAIM ?? DEFAULT_CLAIM;
  return { settings: { url, issuer, audience, claim, fallback: fallback?.grant ?? null }, faults };
}

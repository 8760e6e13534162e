import { reasonOf } from '../base/error-reason.ts';
import { claimPath } from './claims.ts';
import { isProtected } from './discovery.ts';
import { readGrantText, type Grant } from './keys-json.ts';

export interface TokenSettings {
  /** The URL of the keys. null: the configuration of the issuer has it. */
  readonly url: string | null;
  readonly issuer: string;
  readonly audience: string;
  /** The claim that has the rights, by its path. */
  readonly claim: string;
  /** The rights of roles, where the claim is a list of their names. The first one that a token has counts. */
  readonly roles: ReadonlyMap<string, Grant>;
  /** The rights of tokens without the claim. null: none. */
  readonly fallback: Grant | null;
}

const TOGETHER = ['JWT_ISSUER', 'JWT_AUDIENCE'] as const;
const OTHERS = ['JWT_JWKS_URL', 'JWT_CLAIM', 'JWT_ROLES', 'JWT_DEFAULT'] as const;
const DEFAULT_CLAIM = 'sluice';

/** Reads the settings whose names begin with JWT_ from an environment. null: tokens are off. */
export function readTokenSettings(given: NodeJS.ProcessEnv): {
  readonly settings: TokenSettings | null;
  readonly faults: readonly string[];
} {
  const faults: string[] = [];
  const missing = TOGETHER.filter((name) => given[name] === undefined);
  const others = [...OTHERS.slice(0, 1), ...TOGETHER, ...OTHERS.slice(1)].filter(
    (name) => given[name] !== undefined,
  );
  if (missing.length > 0 && others.length > 0)
    faults.push(
      `${others.join(' and ')} also need${others.length === 1 ? 's' : ''} ${missing.join(' and ')}`,
    );
  const { JWT_JWKS_URL: url, JWT_ISSUER: issuer, JWT_AUDIENCE: audience, JWT_DEFAULT: text } = given;
  if (url !== undefined && !URL.canParse(url)) faults.push('JWT_JWKS_URL must be a URL');
  if (url === undefined && issuer !== undefined && !isProtected(issuer))
    faults.push(
      'JWT_ISSUER must be an https URL, whose configuration names the keys, unless JWT_JWKS_URL does',
    );
  const fallback = text === undefined ? null : readGrantText(text);
  faults.push(...(fallback?.faults ?? []).map((fault) => `JWT_DEFAULT ${fault}`));
  const roles = readRoles(given.JWT_ROLES);
  faults.push(...roles.faults);
  if (issuer === undefined || audience === undefined) return { settings: null, faults };
  const claim = given.JWT_CLAIM ?? DEFAULT_CLAIM;
  if (claimPath(claim).length === 0) faults.push('JWT_CLAIM must be the path of a claim');
  return {
    settings: {
      url: url ?? null,
      issuer,
      audience,
      claim,
      roles: roles.grants,
      fallback: fallback?.grant ?? null,
    },
    faults,
  };
}

/** Reads JWT_ROLES: a JSON object with the rights of each role. */
function readRoles(text = '{}'): { readonly grants: ReadonlyMap<string, Grant>; readonly faults: string[] } {
  const grants = new Map<string, Grant>();
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    return { grants, faults: [`JWT_ROLES must be JSON: ${reasonOf(error)}`] };
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return { grants, faults: ['JWT_ROLES must be an object with the rights of each role'] };
  const faults: string[] = [];
  for (const [role, rights] of Object.entries(given)) {
    const read = readGrantText(JSON.stringify(rights));
    grants.set(role, read.grant);
    faults.push(...read.faults.map((fault) => `JWT_ROLES, role ${JSON.stringify(role)} ${fault}`));
  }
  return { grants, faults };
}

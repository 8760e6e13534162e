import type { App } from './app.ts';
import type { Access } from './access/open.ts';
import { KeysWatch } from './access/keys-watch.ts';
import type { Key } from './access/keys.ts';
import type { Rights } from './access/rights.ts';
import type { GrantMaker } from './access/tokens.ts';
import { ConfigError, type Config } from './config.ts';
import { rightsFaults, rightsWarnings, unknownResources } from './scopes/faults.ts';
import type { Log } from './log.ts';
import type { OpenResource } from './resources/open.ts';

export interface KeysParts {
  readonly config: Pick<Config, 'API_KEYS_FILE' | 'apiKeys' | 'tokens'>;
  readonly log: Log;
  readonly scopes: App['scopes'];
  readonly resources: readonly OpenResource[];
}

/**
 * Checks the keys that the settings have, and follows their file. Rejects with ConfigError when they have faults.
 * Resolves with null when no request needs a key.
 */
export async function watchKeys(
  { config, log, scopes, resources }: KeysParts,
  { keyring }: Pick<Access, 'keyring'>,
): Promise<KeysWatch | null> {
  const { API_KEYS_FILE: path, apiKeys } = config;
  if (path === undefined || apiKeys === null || keyring === null) return null;
  const known = namesOf(resources);
  const check = async (keys: readonly Key[]) => {
    const faults = rightsFaults(keys, known);
    if (faults.length > 0) return faults;
    const more = await scopes.prepare(keys);
    if (more.length === 0)
      for (const warning of rightsWarnings(keys, (...of) => scopes.refusalOf(...of))) log.warn({}, warning);
    return more;
  };
  const faults = await check(apiKeys);
  if (faults.length > 0) throw new ConfigError(faults);
  return new KeysWatch({ path, keyring, check, log });
}

/** From now on tokens are accepted. Rejects with ConfigError when JWT_DEFAULT has faults. */
export async function openGrants(
  { config: { tokens }, scopes, resources, log }: KeysParts,
  { grants }: Pick<Access, 'grants'>,
): Promise<void> {
  if (tokens === null) return;
  const known = namesOf(resources);
  const faultsOf = async (rights: Rights) => {
    const unknown = unknownResources(rights, known);
    if (unknown.length > 0)
      return unknown.map((one) => [`there is no resource ${JSON.stringify(one)}`] as const);
    return scopes.add(rights);
  };
  const maker: GrantMaker = {
    has: (rights) => scopes.has(rights),
    make: async (rights) => {
      const faults = await faultsOf(rights);
      if (faults.length > 0) log.warn({ faults: faults.map(whole) }, 'the rights of a token have faults');
      return [...new Set(faults.map(([place]) => place))];
    },
  };
  const faults = tokens.fallback === null ? [] : await faultsOf(tokens.fallback.rights);
  if (faults.length > 0) throw new ConfigError(faults.map((fault) => `JWT_DEFAULT: ${whole(fault)}`));
  grants.maker = maker;
}

/** A fault for the operator: where it is, and what it is. */
function whole(fault: readonly string[]): string {
  return fault.join(': ');
}

function namesOf(resources: readonly OpenResource[]): readonly string[] {
  return [...resources.map(({ resource }) => resource.name), 'users'];
}

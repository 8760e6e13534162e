import type { Access } from './access/open.ts';
import { KeysWatch } from './access/keys-watch.ts';
import type { Key } from './access/keys.ts';
import { ConfigError, type Config } from './config.ts';
import type { Log } from './log.ts';

export interface KeysParts {
  readonly config: Pick<Config, 'API_KEYS_FILE' | 'apiKeys'>;
  readonly log: Log;
  /** Resolves with the faults of keys that only the server can tell. */
  readonly check: (keys: readonly Key[]) => Promise<readonly string[]>;
}

/**
 * Checks the keys that the settings have, and follows their file. Rejects with ConfigError when they have faults.
 * Resolves with null when no request needs a key.
 */
export async function watchKeys(
  { config, log, check }: KeysParts,
  { keyring }: Pick<Access, 'keyring'>,
): Promise<KeysWatch | null> {
  const { API_KEYS_FILE: path, apiKeys } = config;
  if (path === undefined || apiKeys === null || keyring === null) return null;
  const faults = await check(apiKeys);
  if (faults.length > 0) throw new ConfigError(faults);
  return new KeysWatch({ path, keyring, check, log });
}

import type { Key } from '../access/keys.ts';
import type { Rights } from '../access/rights.ts';

/**
 * The faults of keys that only a server can tell: names of resources that it does not have. `known`: the names of
 * those that it has.
 */
export function rightsFaults(keys: readonly Key[], known: readonly string[]): readonly string[] {
  return keys.flatMap(({ name, rights }) => {
    const unknown = unknownResources(rights, known);
    const at = `API_KEYS_FILE, key ${name}`;
    return [
      ...unknown.map(
        (one) => `${at}: there is no resource ${JSON.stringify(one)}; expected ${known.join(', ')}`,
      ),
    ];
  });
}

/**
 * What a server cannot give these keys although they name it: changes of a resource of which they open a part. One
 * sentence each, for the log.
 */
export function rightsWarnings(keys: readonly Key[]): readonly string[] {
  return keys.flatMap(({ name, rights: { namesChanges, scopes } }) =>
    namesChanges
      ? [...scopes.keys()].map(
          (resource) =>
            `API_KEYS_FILE, key ${name}: changes of ${resource} are refused, because the key opens a part of it`,
        )
      : [],
  );
}

/** The resources that rights name and the server does not have. */
export function unknownResources({ resources, scopes }: Rights, known: readonly string[]): readonly string[] {
  const named = new Set([...(resources ?? []), ...scopes.keys()]);
  return [...named].filter((one) => !known.includes(one));
}

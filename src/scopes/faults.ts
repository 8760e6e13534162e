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
 * sentence each, for the log. `why`: the reason for a resource, undefined where it tells them.
 */
export function rightsWarnings(
  keys: readonly Key[],
  why: (rights: Rights, resource: string) => string | undefined,
): readonly string[] {
  return keys.flatMap(({ name, rights }) =>
    [...(rights.namesChanges ? rights.scopes.keys() : [])].flatMap((resource) => {
      const reason = why(rights, resource);
      const at = `API_KEYS_FILE, key ${name}`;
      return reason === undefined
        ? []
        : [`${at}: changes of ${resource} are refused, because the key opens a part of it. ${reason}`];
    }),
  );
}

/** The resources that rights name and the server does not have. */
export function unknownResources({ resources, scopes }: Rights, known: readonly string[]): readonly string[] {
  const named = new Set([...(resources ?? []), ...scopes.keys()]);
  return [...named].filter((one) => !known.includes(one));
}

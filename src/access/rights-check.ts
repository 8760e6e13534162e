import type { Rights, Scope } from './rights.ts';
import { Faults } from '../base/errors.ts';

/** Checks the part of one resource. Rejects with Faults. Resolves with a sentence why its changes are refused, or null. */
export type CheckScope = (scope: Scope) => Promise<string | null>;

/** What a client may know of a fault, and what is for the operator, since it can name resources, collections and indexes. */
type Fault = readonly [shown: string, detail: string];

export type RightsCheck = ReturnType<typeof rightsCheck>;

/**
 * Returns a function that finds what is wrong with rights on a server with certain resources, and why it refuses changes
 * of those of which the rights open a part. `parts`: the checks of now, by the names of the resources. `mayCome`: whether
 * there may be a resource of a name that is not known yet. Its rights are checked once it is there.
 */
export function rightsCheck(
  parts: () => ReadonlyMap<string, CheckScope>,
  mayCome: (resource: string) => boolean,
) {
  return async ({ resources, scopes }: Rights) => {
    const known = parts();
    const expected = `expected ${[...known.keys()].join(', ')}`;
    const faults: Fault[] = [...new Set([...(resources ?? []), ...scopes.keys()])]
      .filter((one) => !known.has(one) && !mayCome(one))
      .map((one) => [`there is no resource ${JSON.stringify(one)}`, expected]);
    const refusals = new Map<string, string>();
    for (const [resource, scope] of scopes) {
      try {
        const refusal = (await known.get(resource)?.(scope)) ?? null;
        if (refusal !== null) refusals.set(resource, refusal);
      } catch (error) {
        if (!(error instanceof Faults)) throw error;
        faults.push(...error.faults.map((fault) => [resource, fault] as const));
      }
    }
    return { faults, refusals };
  };
}

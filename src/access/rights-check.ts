import type { Key } from './keys.ts';
import type { Rights, Scope } from './rights.ts';
import { Faults } from '../errors.ts';

/**
 * Checks the part of one resource. Rejects with Faults. Resolves with why its changes are refused, in a sentence;
 * null: they are not, or it has none.
 */
export type CheckPart = (scope: Scope) => Promise<string | null>;

type Fault = readonly [place: string, fault?: string];

export type RightsCheck = ReturnType<typeof rightsCheck>;

/**
 * What is wrong with rights that only a server can find, which has certain resources. `parts`: those of now, by the names of
 * the resources.
 */
export function rightsCheck(parts: () => ReadonlyMap<string, CheckPart>) {
  const unknownIn = ({ resources, scopes }: Rights): readonly string[] =>
    [...new Set([...(resources ?? []), ...scopes.keys()])]
      .filter((one) => !parts().has(one))
      .map((one) => `there is no resource ${JSON.stringify(one)}`);

  const check = async ({ scopes }: Rights) => {
    const faults: Fault[] = [];
    /** Why changes are refused, by resource. */
    const refusals = new Map<string, string>();
    for (const [resource, scope] of scopes) {
      try {
        const refusal = (await parts().get(resource)?.(scope)) ?? null;
        if (refusal !== null) refusals.set(resource, refusal);
      } catch (error) {
        if (!(error instanceof Faults)) throw error;
        faults.push(...error.faults.map((fault) => [resource, fault] as const));
      }
    }
    return { faults, refusals };
  };

  return {
    /** The faults of keys, one sentence each, and what the server cannot give them although they name it. */
    async ofKeys(
      keys: readonly Key[],
    ): Promise<{ readonly faults: readonly string[]; readonly warnings: readonly string[] }> {
      const expected = [...parts().keys()].join(', ');
      const unknown = keys.flatMap(({ name, rights }) =>
        unknownIn(rights).map((one) => `${placeOf(name)}: ${one}; expected ${expected}`),
      );
      if (unknown.length > 0) return { faults: unknown, warnings: [] };
      const faults: string[] = [];
      const warnings: string[] = [];
      for (const { name, rights } of keys) {
        const checked = await check(rights);
        faults.push(...checked.faults.map((fault) => `${placeOf(name)}: ${fault.join(': ')}`));
        if (rights.namesChanges)
          for (const [resource, reason] of checked.refusals)
            warnings.push(
              `${placeOf(name)}: changes of ${resource} are refused, because the key opens a part of it. ${reason}`,
            );
      }
      return { faults, warnings };
    },
    /**
     * The faults of other rights: where they are, which a client may know, and what they are, which is for the operator,
     * since it can name collections and indexes.
     */
    async of(rights: Rights): Promise<readonly Fault[]> {
      const unknown = unknownIn(rights);
      return unknown.length > 0 ? unknown.map((one) => [one]) : (await check(rights)).faults;
    },
  };
}

function placeOf(key: string): string {
  return `API_KEYS_FILE, key ${key}`;
}

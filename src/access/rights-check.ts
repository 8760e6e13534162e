import type { Key } from './keys.ts';
import type { Rights, Scope } from './rights.ts';
import { ScopeFaults } from './scope-faults.ts';

/**
 * Checks the part of one resource. Rejects with ScopeFaults. Resolves with why its changes are not told, in a sentence;
 * null: they are, or it has none.
 */
export type CheckPart = (scope: Scope) => Promise<string | null>;

/** A resource, and what is wrong with its part: for the operator, since it can name collections and indexes. */
type Fault = readonly [resource: string, fault: string];

interface Checked {
  readonly faults: readonly Fault[];
  /** Why changes are not told, by resource. */
  readonly refusals: ReadonlyMap<string, string>;
}

/** What is wrong with rights that only a server can tell, which has these resources. */
export class RightsCheck {
  readonly #parts: ReadonlyMap<string, CheckPart>;

  /** `parts`: by the names of the resources. */
  constructor(parts: ReadonlyMap<string, CheckPart>) {
    this.#parts = parts;
  }

  /** The faults of keys, one sentence each, and what the server cannot give them although they name it. */
  async ofKeys(
    keys: readonly Key[],
  ): Promise<{ readonly faults: readonly string[]; readonly warnings: readonly string[] }> {
    const expected = [...this.#parts.keys()].join(', ');
    const unknown = keys.flatMap(({ name, rights }) =>
      this.#unknown(rights).map((one) => `${placeOf(name)}: ${one}; expected ${expected}`),
    );
    if (unknown.length > 0) return { faults: unknown, warnings: [] };
    const faults: string[] = [];
    const warnings: string[] = [];
    for (const { name, rights } of keys) {
      const checked = await this.#check(rights);
      faults.push(...checked.faults.map((fault) => `${placeOf(name)}: ${fault.join(': ')}`));
      if (rights.namesChanges)
        for (const [resource, reason] of checked.refusals)
          warnings.push(
            `${placeOf(name)}: changes of ${resource} are refused, because the key opens a part of it. ${reason}`,
          );
    }
    return { faults, warnings };
  }

  /** The faults of other rights: where they are, which may be told to a client, and what they are. */
  async of(rights: Rights): Promise<readonly (readonly [place: string, fault?: string])[]> {
    const unknown = this.#unknown(rights);
    if (unknown.length > 0) return unknown.map((one) => [one]);
    return (await this.#check(rights)).faults;
  }

  #unknown({ resources, scopes }: Rights): readonly string[] {
    const named = new Set([...(resources ?? []), ...scopes.keys()]);
    return [...named]
      .filter((one) => !this.#parts.has(one))
      .map((one) => `there is no resource ${JSON.stringify(one)}`);
  }

  async #check({ scopes }: Rights): Promise<Checked> {
    const faults: Fault[] = [];
    const refusals = new Map<string, string>();
    for (const [resource, scope] of scopes) {
      try {
        const refusal = (await this.#parts.get(resource)?.(scope)) ?? null;
        if (refusal !== null) refusals.set(resource, refusal);
      } catch (error) {
        if (!(error instanceof ScopeFaults)) throw error;
        faults.push(...error.faults.map((fault) => [resource, fault] as const));
      }
    }
    return { faults, refusals };
  }
}

function placeOf(key: string): string {
  return `API_KEYS_FILE, key ${key}`;
}

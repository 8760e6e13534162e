import { collectionReplaced, storeUnfit } from '../../errors.ts';
import type { Identity } from '../bookmark.ts';
import { KEY_INDEX } from '../indexes.ts';
import type { Plan } from '../store.ts';
import type { LoadGate } from './load-gate.ts';
import { indexFor, isByKey, readByOf } from './range.ts';
import type { SetIndexes } from './set-indexes.ts';
import type { SetParts } from './set-parts.ts';
import { indexOf, type SetRecord } from './sets.ts';

/** The tables of a set, or the order of its rows, are others than when its read began. */
class SetReplaced extends Error {}

/** Looks at a set when its turn comes. See Looks.take. */
export type SetLook = <T>(
  look: (set: SetRecord) => T,
  signal: AbortSignal,
  isPatient?: boolean,
) => Promise<T>;

export class SetLooks {
  readonly #options: SetParts;
  readonly #gate: LoadGate;
  readonly #indexes: SetIndexes;

  constructor(options: SetParts, gate: LoadGate, indexes: SetIndexes) {
    [this.#options, this.#gate, this.#indexes] = [options, gate, indexes];
  }

  /** In a look: the set as it is. */
  current(): SetRecord {
    const set = this.#options.sets.get(this.#options.name);
    this.#indexes.buildLater(set);
    return set;
  }

  /** In a look: the set as it is, whose rows must be whole and whose index for the plan usable. */
  present(plan: Plan): SetRecord {
    const set = this.current();
    this.#gate.assertWhole(set);
    if (isByKey(plan) || isSingle(plan)) return set;
    const name = readByOf(plan);
    const index = indexFor(set, plan);
    if (!index) throw storeUnfit(`The resource ${set.label} has no index ${name}.`);
    const { refused } = indexOf(index);
    if (refused !== undefined)
      throw storeUnfit(`The index ${name} of ${set.label} cannot be used: ${refused}.`);
    return set;
  }

  /** Rejects unless the plan can read the set as it is now, and it is of this identity. */
  async confirm(plan: Plan, identity: Identity): Promise<void> {
    await this.#options.looks.soon(() => this.#ofIdentity({ ...plan, identity }));
  }

  /** Runs looks that are all of one identity: when the rows are removed between them, `work` begins anew. */
  async within<T>(plan: Plan, work: (look: SetLook) => Promise<T>): Promise<T> {
    for (;;) {
      let first: SetRecord | null = null;
      const inSet = <R>(look: (set: SetRecord) => R): R => {
        const set = this.#ofIdentity(plan);
        if (isOther(set, (first ??= set))) throw new SetReplaced();
        return look(set);
      };
      try {
        return await work((look, ...call) => this.#options.looks.take(() => inSet(look), ...call));
      } catch (error) {
        if (!(error instanceof SetReplaced)) throw error;
      }
    }
  }

  #ofIdentity(plan: Plan): SetRecord {
    const set = this.present(plan);
    if (plan.identity !== undefined && plan.identity !== set.identity) throw collectionReplaced();
    return set;
  }
}

/** Whether batches of one are read in another way than those of the other. */
function isOther(one: SetRecord, other: SetRecord): boolean {
  return (
    one.number !== other.number ||
    one.identity !== other.identity ||
    one.isInOrder !== other.isInOrder ||
    one.hasLargeRows !== other.hasLargeRows
  );
}

/** Whether a plan names one row by its key. */
export function isSingle({ index, equals = [] }: Pick<Plan, 'index' | 'equals'>): boolean {
  return index?.name === KEY_INDEX.name && equals.length > 0;
}

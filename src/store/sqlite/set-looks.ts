import { collectionReplaced, storeUnfit } from '../../errors.ts';
import { KEY_INDEX } from '../indexes.ts';
import type { Plan } from '../store.ts';
import type { LoadGate } from './load-gate.ts';
import type { Looks } from './looks.ts';
import { indexFor, isByKey, readByOf } from './range.ts';
import type { SetIndexes } from './set-indexes.ts';
import type { SetParts } from './set-parts.ts';
import { indexOf, type SetRecord } from './sets.ts';

/** The tables of a set, or the order of its rows, are others than when its read began. */
class SetReplaced extends Error {}

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

  /** The set as it is now. Rejects unless the plan can read it, and is of its identity. */
  async now(plan: Plan): Promise<SetRecord> {
    const set = await this.#options.looks.soon(() => this.present(plan));
    if (plan.identity !== undefined && plan.identity !== set.identity) throw collectionReplaced();
    return set;
  }

  /**
   * Runs looks that are all of one identity: when the rows are removed between them, `work` begins anew. It begins with the set
   * as it was last seen, which saves a look, so it must look itself.
   */
  async within<T>(plan: Plan, work: (set: SetRecord, look: Looks['take']) => Promise<T>): Promise<T> {
    for (let seen = this.#lastSeen(plan); ; seen = null) {
      const set = seen ?? (await this.now(plan));
      try {
        return await work(set, (look, ...call) =>
          this.#options.looks.take(
            () => {
              if (isOther(this.present(plan), set)) throw new SetReplaced();
              return look();
            },
            ...call,
          ),
        );
      } catch (error) {
        if (!(error instanceof SetReplaced)) throw error;
      }
    }
  }

  /** The set as it was last seen, when the plan could read it then. */
  #lastSeen(plan: Plan): SetRecord | null {
    const { sets, name } = this.#options;
    const set = sets.lastSeen(name);
    if (!set || (plan.identity !== undefined && plan.identity !== set.identity)) return null;
    return isByKey(plan) || isSingle(plan) || indexFor(set, plan) ? set : null;
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

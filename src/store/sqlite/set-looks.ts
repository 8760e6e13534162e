import { collectionReplaced, storeUnfit } from '../../errors.ts';
import { KEY_INDEX } from '../indexes.ts';
import type { Plan } from '../store.ts';
import type { LoadGate } from './load-gate.ts';
import type { Looks } from './looks.ts';
import { isByKey, readByOf } from './range.ts';
import type { SetIndexes } from './set-indexes.ts';
import type { SetParts } from './set-parts.ts';
import { indexOf, nameOf, type SetRecord } from './sets.ts';

/** The tables of a set, or the order of its rows, are others than when its read began. */
class SetReplaced extends Error {}

/** Looks at a set. */
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
    const index = set.indexes.find(({ paths }) => nameOf(paths) === name);
    if (!index) throw storeUnfit(`The resource ${set.label} has no index ${name}.`);
    const { refused } = indexOf(index);
    if (refused !== undefined)
      throw storeUnfit(`The index ${name} of ${set.label} cannot be used: ${refused}.`);
    return set;
  }

  /** Runs looks that are all of one identity: when the rows are removed between them, `work` begins anew. */
  async within<T>(plan: Plan, work: (set: SetRecord, look: Looks['take']) => Promise<T>): Promise<T> {
    const { looks } = this.#options;
    for (;;) {
      const set = await looks.soon(() => this.present(plan));
      if (plan.identity !== undefined && plan.identity !== set.identity) throw collectionReplaced();
      try {
        return await work(set, (look, ...call) =>
          looks.take(
            () => {
              const now = this.present(plan);
              if (now.number !== set.number || now.isInOrder !== set.isInOrder) throw new SetReplaced();
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
}

/** Whether a plan names one row by its key. */
export function isSingle({ index, equals = [] }: Pick<Plan, 'index' | 'equals'>): boolean {
  return index?.name === KEY_INDEX.name && equals.length > 0;
}

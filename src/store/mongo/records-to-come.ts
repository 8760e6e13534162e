import { around } from '../around.ts';
import type { ReadBatch } from '../batch.ts';
import type { Collection } from '../collection.ts';
import type { Plan, Size } from '../plan.ts';
import type { Slots } from '../slots.ts';
import { BatchBuilder } from './batch-builder.ts';
import { NotMadeYet } from './create-collection.ts';

/** The rows of a collection. Reads that reject with NotMadeYet find nothing instead. */
export function emptyUntilMade(rows: Collection, slots: Slots): Collection {
  const or = <T>(reading: Promise<T>, nothing: () => T): Promise<T> =>
    reading.catch((error: unknown) => {
      if (error instanceof NotMadeYet) return nothing();
      throw error;
    });
  const nothing = (plan: Plan, size: Size): ReadBatch => ({
    ...new BatchBuilder(plan, size).toBatch(slots, false),
    confirm: () => Promise.resolve(), // it holds every row that there was, although there is a collection now
  });
  return around(rows, {
    read: (plan, from, size, signal) => or(rows.read(plan, from, size, signal), () => nothing(plan, size)),
    describe: (...call) =>
      or(rows.describe(...call), () => ({ identity: undefined, indexes: [], now: null })),
    count: (...call) => or(rows.count(...call), () => ({ rows: 0, is: 'exact' })),
    split: (...call) => or(rows.split(...call), () => []),
    nextValue: (...call) => or(rows.nextValue(...call), () => null),
  });
}

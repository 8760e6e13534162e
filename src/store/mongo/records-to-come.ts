import { around } from '../around.ts';
import type { Batch, ReadBatch } from '../batch.ts';
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
  /** What was read before there was a collection holds every row, although there is one now. */
  const empty = new WeakSet<ReadBatch>();
  const nothing = (plan: Plan, size: Size): Batch => {
    const batch = new BatchBuilder(plan, size).toBatch(slots, false);
    empty.add(batch);
    return batch;
  };
  return around(rows, {
    read: (plan, from, size, signal) => or(rows.read(plan, from, size, signal), () => nothing(plan, size)),
    confirm: (batch, ...call) => (empty.has(batch) ? Promise.resolve() : rows.confirm(batch, ...call)),
    identity: (...call) => or(rows.identity(...call), () => undefined),
    count: (...call) => or(rows.count(...call), () => ({ rows: 0, is: 'exact' })),
    split: (...call) => or(rows.split(...call), () => []),
    pointInTime: (...call) => or(rows.pointInTime(...call), () => null),
    indexes: (...call) => or(rows.indexes(...call), () => []),
    holds: (...call) => or(rows.holds(...call), () => false),
    nextValue: (...call) => or(rows.nextValue(...call), () => null),
  });
}

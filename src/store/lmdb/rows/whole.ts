import { collectionReplaced } from '../../../errors.ts';
import type { Batch } from '../../batch.ts';
import type { Identity } from '../../bookmark.ts';
import type { Collection } from '../../store.ts';

/**
 * The same, but each answer is about the rows of one identity. Rows are removed only after the identity has changed, so
 * an answer is whole when the identity is the same before and after it. An answer that is not is asked for again, or
 * rejects with `collection-replaced` when its plan names the identity.
 */
export function wholeCollection(rows: Collection, current: () => Identity): Collection {
  const within = async <T>(
    wanted: Identity | undefined,
    work: (identity: Identity) => Promise<T>,
    release: (found: T) => void = () => undefined,
  ): Promise<T> => {
    for (;;) {
      const before = current();
      if (wanted !== undefined && wanted !== before) throw collectionReplaced();
      const [outcome] = await Promise.allSettled([work(before)]);
      if (current() !== before) {
        if (outcome.status === 'fulfilled') release(outcome.value);
        continue;
      }
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    }
  };
  return {
    ...rows,
    identity: () => Promise.resolve().then(current),
    read: (plan, ...call) =>
      within<Batch>(
        plan.identity,
        async (identity) => ({ ...(await rows.read(plan, ...call)), identity }),
        (batch) => batch.release(),
      ),
    confirm: (batch, plan, signal) => within(plan.identity, () => rows.confirm(batch, plan, signal)),
    get: (...call) =>
      within(
        undefined,
        () => rows.get(...call),
        (found) => found?.release(),
      ),
    count: (plan, ...call) => within(plan.identity, () => rows.count(plan, ...call)),
    split: (plan, ...call) => within(plan.identity, () => rows.split(plan, ...call)),
    holds: (...call) => within(undefined, () => rows.holds(...call)),
    nextValue: (...call) => within(undefined, () => rows.nextValue(...call)),
  };
}

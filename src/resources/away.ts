import { storeUnavailable } from '../errors.ts';
import type { ChangeFeed, ScopeLog } from '../store/change-feed.ts';
import type { Collection } from '../store/store.ts';

/** A collection that is not found yet, because the store is away: everything rejects with `store-unavailable`. */
export function awayCollection(): Collection {
  const away = () => Promise.reject(unknownYet());
  const feed: ChangeFeed = {
    ...{ now: away, read: away, lookUp: away, reaches: () => false },
    at: () => {
      throw unknownYet();
    },
  };
  const scoped: ScopeLog = { ...feed, read: away, refusal: away };
  const changes = { ...feed, within: () => scoped };
  return { read: away, describe: away, count: away, split: away, nextValue: away, changes };
}

function unknownYet() {
  return storeUnavailable(new Error('the store was away when the collection was looked for'));
}

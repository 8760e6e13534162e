import { changesUnsupported, storeUnavailable } from '../errors.ts';
import { awaitAtMost } from '../store/deadline.ts';
import type { ChangeFeed } from '../store/change-feed.ts';
import type { Collection } from '../store/store.ts';

/** How long a call waits for the collection to be opened. Milliseconds. */
const OPEN_WAIT_MS = 5_000;

/**
 * A collection that cannot be opened yet, because the store is away. Each call tries to open it until that succeeds, and
 * rejects as `open` does; calls that come meanwhile share one attempt.
 */
export function lateCollection(open: () => Promise<Collection>): Collection {
  let opening: Promise<Collection> | null = null;
  let rows: Collection | null = null;
  const opened = (signal: AbortSignal): Promise<Collection> => {
    opening ??= open().then(
      (found) => (rows = found),
      (error: unknown) => {
        opening = null;
        throw error;
      },
    );
    return awaitAtMost(OPEN_WAIT_MS, signal, opening);
  };
  return {
    read: async (plan, from, size, signal) => (await opened(signal)).read(plan, from, size, signal),
    describe: async (signal, wants) => (await opened(signal)).describe(signal, wants),
    count: async (plan, mode, signal) => (await opened(signal)).count(plan, mode, signal),
    split: async (plan, parts, signal) => (await opened(signal)).split(plan, parts, signal),
    nextValue: async (index, equals, from, signal) =>
      (await opened(signal)).nextValue(index, equals, from, signal),
    changes: lateFeed(opened, () => rows),
  };
}

function lateFeed(
  opened: (signal: AbortSignal) => Promise<Collection>,
  known: () => Collection | null,
): ChangeFeed {
  const feed = async (signal: AbortSignal): Promise<ChangeFeed> => {
    const { changes } = await opened(signal);
    if (!changes) throw changesUnsupported('The store of this resource has no changes.');
    return changes;
  };
  return {
    now: async (signal) => (await feed(signal)).now(signal),
    at: (time) => {
      const changes = known()?.changes; // a time comes from rows that were read
      if (!changes) throw storeUnavailable(new Error('the collection is not open yet'));
      return changes.at(time);
    },
    within: (own) => {
      const part = async (signal: AbortSignal) => {
        const found = (await feed(signal)).within?.(own);
        if (!found) throw changesUnsupported('The store has no changes of a part.');
        return found;
      };
      return {
        ...lateFeed(opened, known),
        now: async (signal) => (await part(signal)).now(signal),
        read: async (place, size, identity, signal) =>
          (await part(signal)).read(place, size, identity, signal),
        refusal: async (signal) => (await part(signal)).refusal(signal),
      };
    },
    read: async (place, size, identity, signal) => (await feed(signal)).read(place, size, identity, signal),
    lookUp: async (keys, plan, size, signal) => (await feed(signal)).lookUp(keys, plan, size, signal),
  };
}

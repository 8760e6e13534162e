import type { ChangedKeys, ChangeFeed, LookUpResult, ScopeLog } from '../store/change-feed.ts';
import { tracedWork, type TracedPlace } from './traced-work.ts';

/** The changes of a collection, whose reads for a sampled request or export become parts of its span. */
export function tracedFeed(feed: ChangeFeed, place: TracedPlace): ChangeFeed {
  const within = feed.within?.bind(feed);
  const { refusal } = feed;
  return {
    now: tracedWork(
      (signal) => feed.now(signal),
      { name: 'changes.now', signalOf: ([signal]) => signal },
      place,
    ),
    at: (time) => feed.at(time),
    reaches: (...places) => feed.reaches(...places),
    read: tracedRead((...call) => feed.read(...call), place),
    lookUp: tracedWork((...call) => feed.lookUp(...call), LOOK_UP, place),
    ...(within && { within: (scope) => tracedLog(within(scope), place) }),
    ...(refusal && { refusal: (signal) => refusal.call(feed, signal) }),
  };
}

function tracedLog(log: ScopeLog, place: TracedPlace): ScopeLog {
  return {
    ...tracedFeed(log, place),
    read: tracedRead((...call) => log.read(...call), place),
    refusal: (signal) => log.refusal(signal),
    slots: log.slots,
  };
}

/** A read that waits for changes is as long as its wait. */
function tracedRead<Changed extends ChangedKeys>(
  read: (...call: Parameters<ChangeFeed['read']>) => Promise<Changed>,
  place: TracedPlace,
): (...call: Parameters<ChangeFeed['read']>) => Promise<Changed> {
  const name = 'changes.read';
  return tracedWork(
    read,
    { name, signalOf: (call) => call[3], factsOf: ({ keys }) => ({ 'sluice.keys': keys.length }) },
    place,
  );
}

const LOOK_UP = {
  name: 'changes.lookUp',
  signalOf: (call: Parameters<ChangeFeed['lookUp']>) => call[3],
  factsOf: ({ batch }: LookUpResult) => ({ 'db.response.returned_rows': batch?.rows ?? 0 }),
};

import type { Resource } from '../resources/query/resource.ts';
import type { ChangeFeed, FeedPlace } from '../store/change-feed.ts';
import { takeSnapshot } from './reader.ts';
import type { KeptPlace } from './record.ts';

/** Keys and milliseconds of a read of changes. One key is enough to know that there are some. */
const SIZE = { most: 1, waitMs: 0 };
const WAIT_MS = 200;

/** A place behind that of an edition up to which no row has changed. */
interface LaterPlace {
  readonly place: FeedPlace;
  /** When the rows were so. Milliseconds since 1970. */
  readonly at: number;
}

/**
 * Looks whether no row has changed since a place, so that neither index files nor rows are to be read. Null: some have. Rejects
 * with `changes-expired` and `collection-replaced` where that is not known.
 */
export async function withoutChanges(
  resource: Resource,
  feed: ChangeFeed,
  { place, identity }: KeptPlace,
  signal: AbortSignal,
): Promise<LaterPlace | null> {
  const first = await feed.read(place, SIZE, identity, signal);
  if (first.keys.length > 0) return null;
  const at = Date.now();
  const state = await takeSnapshot(resource, signal);
  state.release();
  if (state.identity !== identity) return null;
  let next = first.next;
  let waitMs = 0; // what has come by now is there without a wait
  while (!feed.reaches(next, state.place)) {
    const read = await feed.read(next, { ...SIZE, waitMs }, identity, signal);
    if (read.keys.length > 0) return null;
    if (read.isUpToDate) break; // a place that nothing follows may be before the state's
    next = read.next;
    waitMs = WAIT_MS;
  }
  return { place: state.place, at };
}

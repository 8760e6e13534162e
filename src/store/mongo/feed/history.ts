import { collectionReplaced } from '../../../errors.ts';
import type { PointInTime } from '../../bookmark.ts';
import type { ScopeFields } from '../../scope-predicate.ts';
import type { MongoConnection } from '../connection.ts';
import { EventCursor } from './cursor.ts';
import { placeFault } from './faults.ts';
import { hasReached, type FeedPage } from './page.ts';

/** How long to look for a change before page that there was none so far. Milliseconds. */
const LONGEST_MS = 1_000;
/** Events in a reply. Keys take some 200 bytes each. */
const [FEWEST, MOST] = [100, 5_000];

/** Which history to read: that of a collection up to a time. */
export interface HistoryRequest {
  readonly connection: MongoConnection;
  readonly collection: string;
  readonly until: PointInTime;
  readonly most: number;
  /** See StreamRequest. */
  readonly fields?: ScopeFields | undefined;
}

/**
 * Adds the events from a reader's place on to `page`, by a cursor of its own. Ends when the keys are enough, when
 * everything up to `until` was read, or when reading foreign changes takes long. Resolves with whether everything was
 * read. Rejects with `collection-replaced`, the signal's reason or the driver's errors.
 */
export async function readHistory(
  page: FeedPage,
  { connection, collection, until, most, fields }: HistoryRequest,
  signal: AbortSignal,
): Promise<boolean> {
  const end = performance.now() + LONGEST_MS;
  const batch = Math.min(Math.max(most, FEWEST), MOST);
  const request = { collections: [collection], from: page.next, batch, fields };
  const cursor = await EventCursor.open(connection, request, signal).catch((error: unknown) => {
    throw placeFault(error, request.from);
  });
  try {
    for (;;) {
      const { events, behind, isDrained, hasEnded } = await cursor.next(0, signal);
      if (!page.add(events, behind)) return false;
      if (hasEnded) throw collectionReplaced(); // the database was dropped
      if (hasReached(behind, isDrained, until)) return true;
      if (performance.now() > end) return false;
    }
  } finally {
    await cursor.close();
  }
}

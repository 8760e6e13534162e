import { collectionReplaced } from '../../../base/errors.ts';
import type { PointInTime } from '../../bookmark.ts';
import type { MongoConnection } from '../connection.ts';
import { openEvents, type StreamRequest } from './cursor.ts';
import { placeFault } from './feed-faults.ts';
import { hasReached, type FeedPage } from './page.ts';

/** How long a look into the history goes on over foreign changes before the answer is that there was none so far. Milliseconds. */
const LONGEST_MS = 1_000;
/** Events in a reply to such a look. Keys take some 200 bytes each. */
const FEWEST = 100;
const MOST = 5_000;

/**
 * Adds the events from a page's place on to it, by a cursor of its own. Ends when the keys are enough, when everything
 * up to `until` was read, or when reading foreign changes takes long. Resolves with whether everything was read.
 */
export async function readHistory(
  connection: MongoConnection,
  wanted: Pick<StreamRequest, 'collections' | 'fields'>,
  page: FeedPage,
  until: PointInTime,
  signal: AbortSignal,
): Promise<boolean> {
  const end = performance.now() + LONGEST_MS;
  const from = page.next;
  const batch = Math.min(Math.max(page.most, FEWEST), MOST);
  const request = { ...wanted, from, batch };
  const cursor = await openEvents(connection, request, signal).catch((error: unknown) => {
    throw placeFault(error, from);
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

import type { Timestamp } from 'mongodb';
import { AppError, changesUnsupported, collectionReplaced } from '../../../errors.ts';
import type { Identity, PointInTime } from '../../bookmark.ts';
import type { ChangedInScope, ChangeFeed, FeedPlace, FeedSize, ScopeLog } from '../../change-feed.ts';
import type { ScopeFields, ScopePredicate } from '../../scope-predicate.ts';
import type { Slots } from '../../slots.ts';
import { coalesced } from '../coalesced.ts';
import { awaitAtMost } from '../../deadline.ts';
import { findOne } from '../commands.ts';
import { COMMAND_LIMIT_MS, type MongoConnection } from '../connection.ts';
import { describeCollection } from '../create-collection.ts';
import { faultOf, inPresentCollection } from '../faults.ts';
import type { Layouts } from '../layouts.ts';
import { isAhead, pointInTimeOf } from '../snapshot.ts';
import { openEvents } from './cursor.ts';
import { endOf, feedFault, placeFault, STANDALONE } from './faults.ts';
import {
  decodePlace,
  encodePlace,
  isBefore,
  isTime,
  notOfThisStore,
  placeOfTime,
  timeOf,
  type Place,
} from './place.ts';
import type { DatabaseStream } from './stream.ts';
import { hasReached, FeedPage } from './page.ts';
import type { Window } from './window.ts';

/** How long a reader waits for the shared stream before it looks into the history again. Milliseconds. */
const LOOK_AGAIN_MS = 500;
/** How long a look into the history goes on over foreign changes before the answer is that there was none so far. Milliseconds. */
const LONGEST_MS = 1_000;
/** Events in a reply to such a look. Keys take some 200 bytes each. */
const [FEWEST, MOST] = [100, 5_000];

/** The signal of what no reader can end alone. */
const NEVER = new AbortController().signal;

export interface FeedParts {
  readonly connection: MongoConnection;
  readonly layouts: Layouts;
  readonly lookUp: ChangeFeed['lookUp'];
  readonly slots: Slots;
  /** The stream of the collection's database. */
  readonly stream: DatabaseStream;
  /** The changes of the collection alone, as the readers of scopes by these fields see them. */
  readonly streamWith: (fields: ScopeFields) => DatabaseStream;
}

/**
 * The changes of a collection in MongoDB, as the readers of a scope see them if there is one. Readers whose place is in
 * the window of the stream of the database wait on that, and share one look at what is behind it. A reader that lags
 * reads its history by a cursor of its own.
 */
export function mongoFeed(parts: FeedParts, scope?: ScopePredicate): ScopeLog {
  const { connection, layouts, lookUp, slots, stream } = parts;
  const { collection } = layouts;
  /** The time of the collection. Callers that ask at the same time share one question. */
  const times = coalesced<'', PointInTime>(async () => {
    const { identity } = await layouts.layout();
    try {
      const { operationTime } = await connection.run(findOne(collection, identity));
      if (!operationTime) throw changesUnsupported(STANDALONE);
      return pointInTimeOf(operationTime as Timestamp);
    } catch (error) {
      throw faultOf(error, layouts, {});
    }
  });
  /** The place up to which nothing has changed behind the window. Null: something has. */
  const looks = coalesced<'', Place | null>(() => lookBehind());

  /** The time of a read of the collection that begins now or later: a majority has every change up to it. */
  const present = (signal: AbortSignal): Promise<PointInTime> =>
    awaitAtMost(COMMAND_LIMIT_MS, signal, times.fresh(''));

  const refusal = async (signal: AbortSignal): Promise<string | null> => {
    signal.throwIfAborted();
    const { options } = (await describeCollection(connection, collection)) ?? {};
    const { changeStreamPreAndPostImages: images } = (options ?? {}) as Readonly<Record<string, unknown>>;
    if ((images as { readonly enabled?: boolean } | undefined)?.enabled === true) return null;
    return `The collection '${collection}' keeps no pre-images. Its operator enables them by db.runCommand({collMod: ${JSON.stringify(collection)}, changeStreamPreAndPostImages: {enabled: true}}).`;
  };

  const refuseScope = async (signal: AbortSignal): Promise<void> => {
    const reason = scope ? await refusal(signal) : null;
    if (reason === null) return;
    layouts.warn(`Changes of parts are refused. ${reason}`); // its names and commands are not for clients
    throw new AppError(
      'forbidden',
      'The key opens a part, whose changes are not known. The log of the server says why.',
    );
  };

  /** Rejects with `collection-replaced` unless the collection that has the name now is the reader's. */
  const refuseOther = async (identity: Identity | undefined, signal: AbortSignal): Promise<void> => {
    const layout = await layouts.layout(signal);
    if (identity === undefined || layout.identity === identity) return;
    if ((await layouts.present()) !== identity) throw collectionReplaced(); // the layout may have been an old one
  };

  const translated = async <T>(
    identity: Identity | undefined,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      const fault = faultOf(feedFault(error), layouts, { identity });
      throw await layouts.orReplaced(fault, identity, signal);
    }
  };

  const pageFrom = (from: Place, seen: PointInTime | undefined, most: number) =>
    new FeedPage(most, from, seen, scope);

  /**
   * Adds the events from a page's place on to it, by a cursor of its own. Ends when the keys are enough, when everything
   * up to `until` was read, or when reading foreign changes takes long. Resolves with whether everything was read.
   */
  const readHistory = async (page: FeedPage, until: PointInTime, signal: AbortSignal): Promise<boolean> => {
    const end = performance.now() + LONGEST_MS;
    const from = page.next;
    const batch = Math.min(Math.max(page.most, FEWEST), MOST);
    const request = { collections: [collection], from, batch, fields: scope?.fields };
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
  };

  const lookBehind = async (): Promise<Place | null> => {
    const { behind } = stream;
    const window = stream.peek(collection);
    if (!behind || !window) return null;
    const page = pageFrom(window.placeAt(behind), undefined, 1);
    const isWhole = await readHistory(page, await present(NEVER), NEVER);
    return isWhole && page.count === 0 ? page.next : null;
  };

  const answerOf = ({ keys, next, seen, matchedBefore }: FeedPage, isUpToDate: boolean): ChangedInScope => ({
    ...{ keys, matchedBefore, isUpToDate },
    next: { token: encodePlace(next), ...(seen !== undefined && { seen }) },
  });

  /** The changes from a place on. `end`: performance.now() at which the reader has waited long enough. */
  const readFrom = async (
    place: Place,
    time: PointInTime | undefined,
    window: Window | undefined,
    size: FeedSize,
    end: number,
    signal: AbortSignal,
  ): Promise<ChangedInScope> => {
    const asked = await present(signal);
    // mongod would accept a time beyond its clock, and leave out every change before it. A stream may be one tick ahead.
    for (const known of [timeOf(place) - 1n, time ?? 0n])
      if (await isAhead(connection, known, signal)) throw notOfThisStore();
    const askedAt = performance.now();
    // A stream may be one tick ahead of the clock, so what the server answered before that time was known does not count
    // for the time itself.
    const isReached = () =>
      stream.behind !== null && hasReached(stream.behind, stream.drainedAt >= askedAt, asked);
    let [until, hasLooked, quiet]: [number, boolean, Place | null] = [end, false, null];
    for (let [from, seen] = [place, time]; ;) {
      const behind = quiet && stream.behind && isBefore(stream.behind, quiet) ? quiet : stream.behind;
      const page = pageFrom(from, seen, size.most);
      const isInWindow = window && behind && window.fill(page, behind);
      const left = until - performance.now();
      if (isInWindow && (page.count > 0 || (left <= 0 && (hasLooked || isReached()))))
        return answerOf(page, page.isWhole && (isReached() || quiet !== null));
      if (isInWindow) {
        if (left > 0) await window.changed(left, signal);
        else {
          [hasLooked, quiet] = [true, await awaitAtMost(null, signal, looks.fresh(''))];
          if (!quiet) until = performance.now() + LOOK_AGAIN_MS; // the stream will give it in a moment
        }
        stream.refuseFailed();
        continue;
      }
      const isUpToDate = await readHistory(page, asked, signal);
      if (page.count > 0 || left <= 0) return answerOf(page, isUpToDate);
      ({ next: from, seen } = page);
      if (window && (!window.start || isBefore(from, window.start)))
        await window.changed(Math.max(0, Math.min(LOOK_AGAIN_MS, end - performance.now())), signal);
    }
  };

  /** Reads see everything up to this time, so the changes begin one tick later. */
  const at = (time: PointInTime): FeedPlace => ({ token: encodePlace(placeOfTime(time + 1n)), seen: time });

  return {
    lookUp,
    slots,
    at,
    refusal,
    /** All readers of scopes by the same fields share one stream, which is open while there are any. */
    within: (own) => mongoFeed({ ...parts, stream: parts.streamWith(own.fields) }, own),
    async now(signal) {
      signal.throwIfAborted();
      return inPresentCollection(undefined, signal, () =>
        translated(undefined, signal, async () => {
          await refuseScope(signal);
          return at(await present(signal));
        }),
      );
    },
    reaches: (place, other) => !isBefore(decodePlace(place.token), decodePlace(other.token)),
    async read({ token, seen }, size, identity, signal) {
      signal.throwIfAborted();
      const from = decodePlace(token);
      if (scope && !isTime(from)) throw notOfThisStore();
      const end = performance.now() + size.waitMs;
      return translated(identity, signal, async () => {
        await refuseOther(identity, signal);
        const isWaiting = size.waitMs > 0;
        if (!isWaiting) await refuseScope(signal);
        const window = isWaiting ? stream.join(collection) : stream.peek(collection);
        try {
          return await readFrom(from, seen, window, size, end, signal);
        } finally {
          if (isWaiting && window) stream.leave(window);
        }
      }).catch((error: unknown) => {
        throw endOf(error);
      });
    },
  };
}

import type { Timestamp } from 'mongodb';
import { AppError, changesUnsupported, collectionReplaced } from '../../../base/errors.ts';
import type { Identity, PointInTime } from '../../bookmark.ts';
import type { ChangedInScope, ChangeFeed, FeedPlace, ScopeLog } from '../../change-feed.ts';
import type { ScopeFields, ScopePredicate } from '../../scope/predicate.ts';
import type { Slots } from '../../turns/slots.ts';
import { coalesced } from '../collection/coalesced.ts';
import { awaitAtMost } from '../../turns/deadline.ts';
import { findOne } from '../commands.ts';
import { COMMAND_LIMIT_MS, type MongoConnection } from '../connection.ts';
import { describeCollection } from '../collection/create-collection.ts';
import { faultOf, inPresentCollection } from '../faults.ts';
import type { Layouts } from '../collection/layouts.ts';
import { isAhead, pointInTimeOf } from '../snapshot.ts';
import { endOf, feedFault, STANDALONE } from './feed-faults.ts';
import { readHistory } from './history.ts';
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
export class MongoFeed implements ScopeLog {
  readonly lookUp: ChangeFeed['lookUp'];
  readonly slots: Slots;
  readonly #parts: FeedParts;
  readonly #scope: ScopePredicate | undefined;
  /** The time of the collection. Callers that ask at the same time share one question. */
  readonly #times = coalesced<'', PointInTime>(() => this.#time());
  /** The place up to which nothing has changed behind the window. Null: something has. */
  readonly #looks = coalesced<'', Place | null>(() => this.#lookBehind());

  constructor(parts: FeedParts, scope?: ScopePredicate) {
    this.lookUp = parts.lookUp;
    this.slots = parts.slots;
    this.#parts = parts;
    this.#scope = scope;
  }

  /** All readers of scopes by the same fields share one stream, which is open while there are any. */
  within(scope: ScopePredicate): ScopeLog {
    return new MongoFeed({ ...this.#parts, stream: this.#parts.streamWith(scope.fields) }, scope);
  }

  async refusal(signal: AbortSignal): Promise<string | null> {
    const { connection, layouts } = this.#parts;
    const { collection } = layouts;
    signal.throwIfAborted();
    const { options } = (await describeCollection(connection, collection)) ?? {};
    const { changeStreamPreAndPostImages: images } = (options ?? {}) as Readonly<Record<string, unknown>>;
    if ((images as { readonly enabled?: boolean } | undefined)?.enabled === true) return null;
    return `The collection '${collection}' keeps no pre-images. Its operator enables them by db.runCommand({collMod: ${JSON.stringify(collection)}, changeStreamPreAndPostImages: {enabled: true}}).`;
  }

  async now(signal: AbortSignal): Promise<FeedPlace> {
    signal.throwIfAborted();
    const work = async (): Promise<FeedPlace> => {
      await this.#refuseScope(signal);
      return this.at(await this.#present(signal));
    };
    return inPresentCollection(undefined, signal, () => this.#translated(undefined, signal, work));
  }

  /** Reads see everything up to this time, so the changes begin one tick later. */
  at(time: PointInTime): FeedPlace {
    return { token: encodePlace(placeOfTime(time + 1n)), seen: time };
  }

  reaches(place: FeedPlace, other: FeedPlace): boolean {
    return !isBefore(decodePlace(place.token), decodePlace(other.token));
  }

  async read(
    ...[{ token, seen }, { most, waitMs }, identity, signal]: Parameters<ChangeFeed['read']>
  ): Promise<ChangedInScope> {
    const { layouts, stream } = this.#parts;
    signal.throwIfAborted();
    const place = decodePlace(token);
    if (this.#scope && !isTime(place)) throw notOfThisStore();
    const empty = new FeedPage(most, place, seen, this.#scope);
    const end = performance.now() + waitMs;
    const work = async (): Promise<ChangedInScope> => {
      await this.#refuseOther(identity, signal);
      const isWaiting = waitMs > 0;
      if (!isWaiting) await this.#refuseScope(signal);
      const window = isWaiting ? stream.join(layouts.collection) : stream.peek(layouts.collection);
      try {
        return await this.#changesFrom(empty, end, window, signal);
      } finally {
        if (isWaiting && window) stream.leave(window);
      }
    };
    try {
      return await this.#translated(identity, signal, work);
    } catch (error) {
      throw endOf(error);
    }
  }

  /** The changes behind an empty page. `end`: performance.now() at which the reader has waited long enough. */
  async #changesFrom(
    { next: place, seen: time, most }: FeedPage,
    end: number,
    window: Window | undefined,
    signal: AbortSignal,
  ): Promise<ChangedInScope> {
    const { stream } = this.#parts;
    const asked = await this.#present(signal);
    await this.#refuseFuture(place, time, signal);
    const askedAt = performance.now();
    // A stream may be one tick ahead of the clock, so what the server answered before that time was known does not count
    // for the time itself.
    const isReached = () =>
      stream.behind !== null && hasReached(stream.behind, stream.drainedAt >= askedAt, asked);
    let until = end;
    let hasLooked = false;
    let quiet: Place | null = null;
    let from = place;
    let seen = time;
    for (;;) {
      const behind = quiet && stream.behind && isBefore(stream.behind, quiet) ? quiet : stream.behind;
      const page = new FeedPage(most, from, seen, this.#scope);
      const isInWindow = window && behind && window.fill(page, behind);
      const left = until - performance.now();
      if (isInWindow && (page.count > 0 || (left <= 0 && (hasLooked || isReached()))))
        return answerOf(page, page.isWhole && (isReached() || quiet !== null));
      if (isInWindow) {
        if (left > 0) await window.changed(left, signal);
        else {
          hasLooked = true;
          quiet = await awaitAtMost(null, signal, this.#looks.fresh(''));
          if (!quiet) until = performance.now() + LOOK_AGAIN_MS; // the stream will give it in a moment
        }
        stream.refuseFailed();
        continue;
      }
      const isUpToDate = await this.#readHistory(page, asked, signal);
      if (page.count > 0 || left <= 0) return answerOf(page, isUpToDate);
      ({ next: from, seen } = page);
      if (window && (!window.start || isBefore(from, window.start)))
        await window.changed(Math.max(0, Math.min(LOOK_AGAIN_MS, end - performance.now())), signal);
    }
  }

  #readHistory(page: FeedPage, until: PointInTime, signal: AbortSignal): Promise<boolean> {
    const { connection, layouts } = this.#parts;
    const wanted = { collections: [layouts.collection], fields: this.#scope?.fields };
    return readHistory(connection, wanted, page, until, signal);
  }

  async #lookBehind(): Promise<Place | null> {
    const { layouts, stream } = this.#parts;
    const { behind } = stream;
    const window = stream.peek(layouts.collection);
    if (!behind || !window) return null;
    const page = new FeedPage(1, window.placeAt(behind), undefined, this.#scope);
    const isWhole = await this.#readHistory(page, await this.#present(NEVER), NEVER);
    return isWhole && page.count === 0 ? page.next : null;
  }

  /** The time of a read of the collection that begins now or later: a majority has every change up to it. */
  #present(signal: AbortSignal): Promise<PointInTime> {
    return awaitAtMost(COMMAND_LIMIT_MS, signal, this.#times.fresh(''));
  }

  async #time(): Promise<PointInTime> {
    const { connection, layouts } = this.#parts;
    const { identity } = await layouts.layout();
    try {
      const { operationTime } = await connection.run(findOne(layouts.collection, identity));
      if (!operationTime) throw changesUnsupported(STANDALONE);
      return pointInTimeOf(operationTime as Timestamp);
    } catch (error) {
      throw faultOf(error, layouts, {});
    }
  }

  async #refuseScope(signal: AbortSignal): Promise<void> {
    const reason = this.#scope ? await this.refusal(signal) : null;
    if (reason === null) return;
    this.#parts.layouts.warn(`Changes of parts are refused. ${reason}`); // its names and commands are not for clients
    throw new AppError(
      'forbidden',
      'The key opens a part, whose changes are not known. The log of the server says why.',
    );
  }

  /** Rejects with `collection-replaced` unless the collection that has the name now is the reader's. */
  async #refuseOther(identity: Identity | undefined, signal: AbortSignal): Promise<void> {
    const { layouts } = this.#parts;
    const layout = await layouts.layout(signal);
    if (identity === undefined || layout.identity === identity) return;
    if ((await layouts.present()) !== identity) throw collectionReplaced(); // the layout may have been an old one
  }

  /**
   * Rejects a place beyond mongod's clock: it would accept the time, and leave out every change before it. A stream may
   * be one tick ahead.
   */
  async #refuseFuture(place: Place, seen: PointInTime | undefined, signal: AbortSignal): Promise<void> {
    for (const known of [timeOf(place) - 1n, seen ?? 0n])
      if (await isAhead(this.#parts.connection, known, signal)) throw notOfThisStore();
  }

  async #translated<T>(
    identity: Identity | undefined,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T> {
    const { layouts } = this.#parts;
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      const fault = faultOf(feedFault(error), layouts, { identity });
      throw await layouts.orReplaced(fault, identity, signal);
    }
  }
}

function answerOf({ keys, next, seen, matchedBefore }: FeedPage, isUpToDate: boolean): ChangedInScope {
  const place = { token: encodePlace(next), ...(seen !== undefined && { seen }) };
  return { keys, matchedBefore, isUpToDate, next: place };
}

import { AppError, collectionReplaced } from '../../../errors.ts';
import type { Bookmark, Identity, PointInTime } from '../../bookmark.ts';
import type { ChangedInScope, FeedPlace, FeedSize, LookedUp, ScopeLog } from '../../change-feed.ts';
import type { ScopeFields, ScopePredicate } from '../../scope-predicate.ts';
import type { Plan, Size } from '../../store.ts';
import { coalesced } from '../coalesced.ts';
import { orAborted } from '../../deadline.ts';
import { describeCollection } from '../create-collection.ts';
import type { MongoConnection } from '../connection.ts';
import { faultOf, inPresentCollection } from '../faults.ts';
import type { Layouts } from '../layouts.ts';
import { FeedClock } from './clock.ts';
import { endOf, feedFault } from './faults.ts';
import { readHistory } from './history.ts';
import type { LookUp } from './look-up.ts';
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

const NONE: ReadonlySet<string> = new Set();
/** The signal of what no reader can end alone. */
const NEVER = new AbortController().signal;

/** What the feed of a collection is made of. */
export interface FeedParts {
  readonly connection: MongoConnection;
  readonly layouts: Layouts;
  readonly lookUp: LookUp;
  /** The stream of the collection's database. */
  readonly stream: DatabaseStream;
  /** The changes of the collection alone, as the readers of scopes by these fields see them. */
  readonly streamWith: (fields: ScopeFields) => DatabaseStream;
}

/** The call of a reader. */
interface Call {
  readonly size: FeedSize;
  /** performance.now() at which the reader has waited long enough. */
  readonly end: number;
  /** The time of the collection at the call. */
  readonly asked: PointInTime;
  /** Whether the shared stream has given every change up to that time. */
  readonly isReached: () => boolean;
  readonly signal: AbortSignal;
}

/**
 * The changes of a collection in MongoDB. Readers whose place is in the window of the stream of the database wait on
 * that, and share one look at what is behind it. A reader that lags reads its history by a cursor of its own.
 */
export class MongoFeed implements ScopeLog {
  readonly #parts: FeedParts;
  readonly #scope: ScopePredicate | undefined;
  readonly #clock: FeedClock;
  readonly #looks = coalesced<''>(
    () => this.#lookBehind(),
    () => performance.now(),
  );
  /** The place up to which nothing had changed behind the window at the last look. Null: something had. */
  #quiet: Place | null = null;

  constructor(parts: FeedParts, scope?: ScopePredicate) {
    this.#parts = parts;
    this.#scope = scope;
    this.#clock = new FeedClock(parts.connection, parts.layouts);
  }

  /** See ChangeFeed. All readers of scopes by the same fields share one stream, which is open while there are any. */
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

  async #refuseScope(signal: AbortSignal): Promise<void> {
    const refusal = this.#scope ? await this.refusal(signal) : null;
    if (refusal === null) return;
    this.#parts.layouts.warn(`Changes of parts are refused. ${refusal}`); // its names and commands are not for clients
    throw new AppError(
      'forbidden',
      'The key opens a part, whose changes are not known. The log of the server says why.',
    );
  }

  async now(signal: AbortSignal): Promise<FeedPlace> {
    signal.throwIfAborted();
    return inPresentCollection(undefined, signal, () =>
      this.#translated(undefined, signal, async () => {
        await this.#refuseScope(signal);
        return this.at(await this.#clock.present(signal));
      }),
    );
  }

  /** Reads see everything up to this time, so the changes begin one tick later. */
  at(time: PointInTime): FeedPlace {
    return { token: encodePlace(placeOfTime(time + 1n)), seen: time };
  }

  reaches(place: FeedPlace, other: FeedPlace): boolean {
    return !isBefore(decodePlace(place.token), decodePlace(other.token));
  }

  async read(
    { token, seen }: FeedPlace,
    size: FeedSize,
    identity: Identity | undefined,
    signal: AbortSignal,
  ): Promise<ChangedInScope> {
    signal.throwIfAborted();
    const from = decodePlace(token);
    if (this.#scope && !isTime(from)) throw notOfThisStore();
    const end = performance.now() + size.waitMs;
    return this.#translated(identity, signal, async () => {
      await this.#refuseOther(identity, signal);
      if (size.waitMs <= 0) await this.#refuseScope(signal);
      const { stream, layouts } = this.#parts;
      const isWaiting = size.waitMs > 0;
      const window = isWaiting ? stream.join(layouts.collection) : stream.peek(layouts.collection);
      try {
        const asked = await this.#clock.present(signal);
        for (const time of [timeOf(from), seen ?? 0n]) await this.#clock.refuseFuture(time, signal);
        const askedAt = performance.now();
        // A stream may be one tick ahead of the clock, so what the server answered before that time was known does not
        // count for the time itself.
        const isReached = () =>
          stream.behind !== null && hasReached(stream.behind, stream.drainedAt >= askedAt, asked);
        return await this.#read(from, seen, window, { size, end, asked, isReached, signal });
      } finally {
        if (isWaiting && window) stream.leave(window);
      }
    }).catch((error: unknown) => {
      throw endOf(error);
    });
  }

  lookUp(keys: readonly Bookmark[], plan: Plan, size: Size, signal: AbortSignal): Promise<LookedUp> {
    return this.#parts.lookUp.rows(keys, plan, size, signal);
  }

  async #read(
    place: Place,
    time: PointInTime | undefined,
    window: Window | undefined,
    { size, end, asked, isReached, signal }: Call,
  ): Promise<ChangedInScope> {
    const { stream } = this.#parts;
    let [until, hasLooked, quiet]: [number, boolean, Place | null] = [end, false, null];
    for (let [from, seen] = [place, time]; ;) {
      const behind = quiet && stream.behind && isBefore(stream.behind, quiet) ? quiet : stream.behind;
      const page = window && behind && window.pageAfter(from, seen, size.most, behind);
      const left = until - performance.now();
      if (page && (page.count > 0 || (left <= 0 && (hasLooked || isReached()))))
        return this.#answerOf(page, page.isWhole && (isReached() || quiet !== null));
      if (page) {
        if (left > 0) await window.changed(left, signal);
        else {
          await orAborted(signal, this.#looks.fresh(''));
          [hasLooked, quiet] = [true, this.#quiet];
          if (!quiet) until = performance.now() + LOOK_AGAIN_MS; // the stream will give it in a moment
        }
        stream.refuseFailed();
        continue;
      }
      const history = this.#pageFrom(from, seen, size.most);
      const isUpToDate = await this.#readHistory(history, asked, size.most, signal);
      if (history.count > 0 || left <= 0) return this.#answerOf(history, isUpToDate);
      ({ next: from, seen } = history);
      if (window && (!window.start || isBefore(from, window.start)))
        await window.changed(Math.max(0, Math.min(LOOK_AGAIN_MS, end - performance.now())), signal);
    }
  }

  #pageFrom(from: Place, seen: PointInTime | undefined, most: number): FeedPage {
    return new FeedPage(most, from, seen, !this.#scope);
  }

  /** See `readHistory`. */
  #readHistory(page: FeedPage, until: PointInTime, most: number, signal: AbortSignal): Promise<boolean> {
    const { connection, layouts } = this.#parts;
    const { collection } = layouts;
    return readHistory(page, { connection, collection, until, most, fields: this.#scope?.fields }, signal);
  }

  async #lookBehind(): Promise<void> {
    const { behind } = this.#parts.stream;
    const page = behind && this.#pageFrom(behind, undefined, 1);
    const isWhole = page && (await this.#readHistory(page, await this.#clock.present(NEVER), 1, NEVER));
    this.#quiet = isWhole === true && page.count === 0 ? page.next : null;
  }

  #answerOf({ keys, next, seen, before }: FeedPage, isUpToDate: boolean): ChangedInScope {
    const scope = this.#scope;
    const matching = scope ? [...before].filter(([, rows]) => rows.some(scope.matches)) : [];
    return {
      keys,
      next: { token: encodePlace(next), ...(seen !== undefined && { seen }) },
      isUpToDate,
      matchedBefore: matching.length > 0 ? new Set(matching.map(([key]) => key)) : NONE,
    };
  }

  /** Rejects with `collection-replaced` unless the collection that has the name now is the reader's. */
  async #refuseOther(identity: Identity | undefined, signal: AbortSignal): Promise<void> {
    const { layouts } = this.#parts;
    const layout = await layouts.layout(signal);
    if (identity === undefined || layout.identity === identity) return;
    if ((await layouts.present()) !== identity) throw collectionReplaced(); // the layout may have been an old one
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

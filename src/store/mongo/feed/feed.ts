import { collectionReplaced } from '../../../errors.ts';
import type { Batch } from '../../batch.ts';
import type { Bookmark, Identity, PointInTime } from '../../bookmark.ts';
import type { ChangedKeys, ChangeFeed, FeedPlace, FeedSize } from '../../change-feed.ts';
import type { Plan, Size } from '../../store.ts';
import type { MongoConnection } from '../connection.ts';
import { faultOf } from '../faults.ts';
import { inPresentCollection } from '../outdated.ts';
import type { IndexWatch } from '../index-watch.ts';
import type { Setup } from '../setup.ts';
import { FeedClock } from './clock.ts';
import { endOf, feedFault } from './faults.ts';
import { readHistory } from './history.ts';
import type { LookUp } from './look-up.ts';
import { decodePlace, encodePlace, isBefore, placeOfTime, timeOf, type Place } from './place.ts';
import type { DatabaseStream } from './stream.ts';
import { hasReached, Telling } from './telling.ts';
import type { Window } from './window.ts';

/** How long a reader waits for the shared stream before it looks into the history again. Milliseconds. */
const LOOK_AGAIN_MS = 500;

/** What the feed of a collection is made of. */
export interface FeedParts {
  readonly connection: MongoConnection;
  readonly setup: Setup;
  readonly watch: IndexWatch;
  readonly lookUp: LookUp;
  /** The stream of the collection's database. */
  readonly stream: DatabaseStream;
}

/** The call of a reader. */
interface Call {
  readonly from: Place;
  readonly seen: PointInTime | undefined;
  readonly size: FeedSize;
  /** performance.now() at which the reader has waited long enough. */
  readonly end: number;
  /** The time of the collection at the call. */
  readonly asked: PointInTime;
  /** When that time was known: performance.now(). */
  readonly askedAt: number;
  readonly signal: AbortSignal;
}

/**
 * The changes of a collection in MongoDB. Readers at the present wait on the stream of the database that all share. A
 * reader that lags reads its history by a cursor of its own, until it is at the present.
 */
export class MongoFeed implements ChangeFeed {
  readonly #parts: FeedParts;
  readonly #clock: FeedClock;

  constructor(parts: FeedParts) {
    this.#parts = parts;
    this.#clock = new FeedClock(parts.connection, parts.setup);
  }

  async now(signal: AbortSignal): Promise<FeedPlace> {
    signal.throwIfAborted();
    return inPresentCollection(undefined, signal, () =>
      this.#translated(undefined, signal, async () => this.at(await this.#clock.present(signal))),
    );
  }

  /** Reads see everything up to this time, so the changes begin one tick later. */
  at(time: PointInTime): FeedPlace {
    return { token: encodePlace(placeOfTime(time + 1n)), seen: time };
  }

  async read(
    { token, seen }: FeedPlace,
    size: FeedSize,
    identity: Identity | undefined,
    signal: AbortSignal,
  ): Promise<ChangedKeys> {
    signal.throwIfAborted();
    const from = decodePlace(token);
    const end = performance.now() + size.waitMs;
    return this.#translated(identity, signal, async () => {
      await this.#refuseOther(identity, signal);
      const { stream, setup } = this.#parts;
      const isWaiting = size.waitMs > 0;
      const window = isWaiting ? stream.join(setup.collection) : stream.peek(setup.collection);
      try {
        const asked = await this.#clock.present(signal);
        for (const time of [timeOf(from), seen ?? 0n]) await this.#clock.refuseFuture(time, signal);
        const askedAt = performance.now();
        return await this.#read({ from, seen, size, end, asked, askedAt, signal }, window);
      } finally {
        if (isWaiting && window) stream.leave(window);
      }
    }).catch((error: unknown) => {
      throw endOf(error);
    });
  }

  rows(keys: readonly Bookmark[], plan: Plan, size: Size, signal: AbortSignal): AsyncIterable<Batch> {
    return this.#parts.lookUp.rows(keys, plan, size, signal);
  }

  async #read(call: Call, window: Window | undefined): Promise<ChangedKeys> {
    const { size, end, asked, signal } = call;
    const { stream } = this.#parts;
    for (let { from, seen } = call; ;) {
      const told = window && stream.behind && window.tell(from, seen, size.most, stream.behind);
      if (told && told.telling.count > 0) return this.#answer(told.telling, told.isWhole, call);
      const left = end - performance.now();
      if (told && left > 0) {
        await window.changed(left, signal);
        stream.refuseFailed();
        continue;
      }
      if (told && this.#isReached(call)) return this.#answer(told.telling, told.isWhole, call);
      const telling = new Telling(size.most, from, seen);
      const { connection, setup } = this.#parts;
      const request = { connection, collection: setup.collection, until: asked, most: size.most };
      const isUpToDate = await readHistory(telling, request, signal);
      if (telling.count > 0 || left <= 0) return { ...answerOf(telling), isUpToDate };
      ({ next: from, seen } = telling);
      if (window && (!window.start || isBefore(from, window.start)))
        await window.changed(Math.max(0, Math.min(LOOK_AGAIN_MS, end - performance.now())), signal);
    }
  }

  #answer(telling: Telling, isWhole: boolean, call: Call): ChangedKeys {
    return { ...answerOf(telling), isUpToDate: isWhole && this.#isReached(call) };
  }

  /**
   * Whether the shared stream has told every change up to the time of a call. A stream may be one tick ahead of the
   * clock, so what the server told before that time was known does not count for the time itself.
   */
  #isReached({ asked, askedAt }: Call): boolean {
    const { behind, drainedAt } = this.#parts.stream;
    return behind !== null && hasReached(behind, drainedAt >= askedAt, asked);
  }

  /** Rejects with `collection-replaced` unless the collection that has the name now is the reader's. */
  async #refuseOther(identity: Identity | undefined, signal: AbortSignal): Promise<void> {
    const { setup, watch } = this.#parts;
    const layout = await setup.layout(signal);
    if (identity === undefined || layout.identity === identity) return;
    if ((await watch.present()) !== identity) throw collectionReplaced(); // the layout may have been an old one
  }

  async #translated<T>(
    identity: Identity | undefined,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T> {
    const { setup, watch } = this.#parts;
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      const fault = faultOf(feedFault(error), setup, { identity });
      throw await watch.orReplaced(fault, identity, signal);
    }
  }
}

function answerOf({ keys, next, seen }: Telling): Pick<ChangedKeys, 'keys' | 'next'> {
  return { keys, next: { token: encodePlace(next), ...(seen !== undefined && { seen }) } };
}

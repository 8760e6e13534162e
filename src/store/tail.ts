import type { Batch } from './batch.ts';
import { textOf, type Bookmark } from './bookmark.ts';
import { BSON } from './bson.ts';
import type { ChangedKeys, ChangeFeed, FeedPlace, LookedUp } from './change-feed.ts';
import { awaitAtMost } from './deadline.ts';
import { LoopTurns } from './loop-turns.ts';
import { keyOfPlace } from './order.ts';
import type { ReadTurns } from './read-turns.ts';
import { retrying, type RetryOptions } from './retrying.ts';
import type { Plan, Size } from './store.ts';

/** Reads changes and their rows for answers that have begun and would rather wait than break off. */
export interface FeedReader {
  /** See ChangeFeed. */
  read: ChangeFeed['read'];
  /** See ChangeFeed. */
  reaches: ChangeFeed['reaches'];
  /** The rows of keys: see `lookUps`. `place`: the one behind these keys, up to which the reader has read the changes. */
  rows(
    keys: readonly Bookmark[],
    plan: Plan,
    place: FeedPlace,
    size: Size,
    signal: AbortSignal,
  ): AsyncIterable<Batch>;
}

/**
 * A reader of changes, whose look-ups take turns with the reads of all streams. What fails with `store-unavailable`, or
 * hangs, is tried again as a stream's reads are, from the same place.
 */
export function retryingFeed(feed: ChangeFeed, turns: ReadTurns, options: RetryOptions): FeedReader {
  const last = retrying(options);
  const lookUp: ChangeFeed['lookUp'] = (keys, plan, size, signal) =>
    turns.take({ ...size, patient: false }, signal, async () => {
      const { taken, batch } = await feed.lookUp(keys, plan, size, signal);
      return { taken, batch: batch && turns.hold(batch) };
    });
  const tail = tailOf({ read: (...call) => feed.read(...call), lookUp });
  return {
    reaches: (...places) => feed.reaches(...places),
    read: (place, size, identity, signal) =>
      last(signal, (limited) => tail.read(place, size, identity, limited), size.waitMs),
    rows: (keys, plan, place, size, signal) =>
      lookUps(keys, plan, (rest, bound) =>
        last(signal, (limited) => tail.lookUp(rest, bound, place, size, limited)),
      ),
  };
}

/**
 * The rows of keys, in as many look-ups as that takes, each once and all of one collection: of keys that name one row
 * (7 and 7.0) the first is asked for. The caller releases each batch.
 */
export async function* lookUps(
  keys: readonly Bookmark[],
  plan: Plan,
  ask: (rest: readonly Bookmark[], plan: Plan) => Promise<LookedUp>,
): AsyncGenerator<Batch, void, undefined> {
  let [rest, bound] = [distinctKeys(keys), plan];
  while (rest.length > 0) {
    const { batch, taken } = await ask(rest, bound);
    rest = rest.slice(taken);
    if (!batch) continue;
    if (bound.identity === undefined && batch.identity !== undefined)
      bound = { ...bound, identity: batch.identity };
    yield batch;
  }
}

function distinctKeys(keys: readonly Bookmark[]): readonly Bookmark[] {
  const byPlace = new Map<string, Bookmark>();
  for (const key of keys) {
    const place = textOf(keyOfPlace(key));
    if (!byPlace.has(place)) byPlace.set(place, key);
  }
  return [...byPlace.values()];
}

/**
 * The changes of a collection for many readers. Readers that have read up to the same place share the look-up of the
 * same keys. They come there together: one that waits for changes reads on only when the others have had theirs.
 *
 * A row may be read only after the change that its reader knows of. A look-up of the same place was begun by a reader
 * that knew the same changes, so it may be joined at any time. The same keys alone say nothing: their rows may have
 * changed again in between. A reader that stalls keeps the rows that it has, and shares later ones only if others are
 * still at its place.
 */
function tailOf(feed: Pick<ChangeFeed, 'read' | 'lookUp'>) {
  const begun = new Map<string, SharedLookUp>();
  const loop = new LoopTurns();
  /** Readers that wait for changes, or for their turn to take them. */
  let waiting = 0;

  const begin = (name: string, ask: (signal: AbortSignal) => Promise<LookedUp>): SharedLookUp => {
    const lookUp = sharedLookUp(ask, () => {
      if (begun.get(name) === lookUp) begun.delete(name);
    });
    begun.set(name, lookUp);
    return lookUp;
  };

  return {
    /** See ChangeFeed. */
    async read(...[place, size, identity, signal]: Parameters<ChangeFeed['read']>): Promise<ChangedKeys> {
      if (size.waitMs <= 0) return feed.read(place, size, identity, signal);
      waiting++;
      try {
        await loop.round();
        const changed = await feed.read(place, size, identity, signal);
        if (waiting > 1 && changed.keys.length > 0) await loop.next();
        signal.throwIfAborted();
        return changed;
      } finally {
        waiting--;
      }
    },
    /** See ChangeFeed. `place`: see FeedReader. */
    async lookUp(
      keys: readonly Bookmark[],
      plan: Plan,
      place: FeedPlace,
      size: Size,
      signal: AbortSignal,
    ): Promise<LookedUp> {
      await loop.round(); // those that share the rows before these ask for the next ones together
      signal.throwIfAborted();
      const name = nameOf(keys, plan, place);
      const lookUp = begun.get(name) ?? begin(name, (own) => feed.lookUp(keys, plan, size, own));
      lookUp.hold();
      try {
        const { batch, taken } = await awaitAtMost(null, signal, lookUp.found);
        if (lookUp.isShared() || waiting > 0) await loop.next(); // others may still join meanwhile
        signal.throwIfAborted();
        if (!batch) await lookUp.drop();
        return { taken, batch: batch && { ...batch, release: once(() => void lookUp.drop()) } };
      } catch (error) {
        await lookUp.drop();
        throw error;
      }
    },
  };
}

type SharedLookUp = ReturnType<typeof sharedLookUp>;

/**
 * A look-up that several readers share. It is aborted when the last one leaves before the rows have come,
 * and its batch is released when all have dropped it. `end` is called when no more readers can join.
 */
function sharedLookUp(ask: (signal: AbortSignal) => Promise<LookedUp>, end: () => void) {
  const abort = new AbortController();
  const found = ask(abort.signal);
  found.catch(end); // its readers have the error
  let holders = 0;
  return {
    found,
    isShared: () => holders > 1,
    hold: (): void => {
      holders++;
    },
    /** Resolves, for the last reader, when nothing of the look-up is left in the store. */
    async drop(): Promise<void> {
      if (--holders > 0) return;
      end();
      abort.abort(new Error('all readers of the look-up have left'));
      const { batch } = await found.catch(() => ({ batch: null }));
      batch?.release();
    },
  };
}

/** A text that is the same for look-ups of the same keys by the same plan at the same place. */
function nameOf(keys: readonly Bookmark[], plan: Plan, { token, seen }: FeedPlace): string {
  const { equals = [], identity = '', since = '' } = plan;
  const head = [textOf(token), seen ?? '', since, identity, textOf(BSON.serialize({ equals }))];
  return [JSON.stringify(head.map(String)), ...keys.map(textOf)].join('');
}

/** A release that throws when it is called again, as that of a slot does. */
function once(release: () => void): () => void {
  let isReleased = false;
  return () => {
    if (isReleased) throw new TypeError('batch released twice');
    isReleased = true;
    release();
  };
}

import type { Batch, ReadBatch } from '../batch.ts';
import type { Bookmark } from '../bookmark.ts';
import type { ChangeFeed, LookUpResult, RowsByKey } from '../change-feed.ts';
import { LoopTurns } from './loop-turns.ts';
import { placeTextOf } from '../values/order.ts';
import type { ReadTurns } from './read-turns.ts';
import { retrying, type RetryOptions } from './retrying.ts';
import type { Collection, Plan, RowReader, Size } from '../store.ts';

/** A reader for chains, which take turns to read, and would rather wait than break off when they have begun. */
export interface StreamReader extends RowReader {
  /** Reads a chain's first batch. No retry: the client has no answer yet, and learns of a failure at once. */
  readonly begin: RowReader['read'];
  /** Reads the changes of the collection. Missing: the store has none. */
  readonly changes?: FeedReader;
}

/** Rows that streams read: those of a collection, of a part of it, or of a snapshot. */
export type StreamedRows = Pick<Collection, 'read' | 'changes'>;

/**
 * Makes the reader of a collection's streams. A read that fails, or hangs, is retried from the same bookmark (see
 * `retrying`), so no row is lost or repeated, and so is the proof of a batch. The time for it begins with the read's turn.
 */
export function streamReader(rows: StreamedRows, turns: ReadTurns, options: RetryOptions): StreamReader {
  const last = retrying(options);
  const inTurn =
    (read: RowReader['read']): RowReader['read'] =>
    (plan, from, size, signal) =>
      turns.take(size, signal, async () => {
        const batch = await read(plan, from, size, signal);
        const confirm: ReadBatch['confirm'] = (own) => last(own, (limited) => batch.confirm(limited));
        return turns.hold({ ...batch, confirm });
      });
  return {
    begin: inTurn((...call) => rows.read(...call)),
    read: inTurn((plan, from, size, signal) => last(signal, (own) => rows.read(plan, from, size, own))),
    mayReadAhead: turns.mayReadAhead,
    ...(rows.changes && { changes: retryingFeed(rows.changes, turns, options) }),
  };
}

/** Reads changes and their rows for answers that have begun and would rather wait than break off. */
export interface FeedReader extends Pick<ChangeFeed, 'read' | 'reaches'> {
  /** The rows of keys: see `lookUps`. `found`: see ChangeFeed.lookUp. */
  rows(
    keys: readonly Bookmark[],
    plan: Plan,
    size: Size,
    signal: AbortSignal,
    found?: RowsByKey,
  ): AsyncIterable<Batch>;
}

/**
 * A reader of changes, whose look-ups take turns with the reads of all streams. What fails with `store-unavailable`, or
 * hangs, is tried again as a stream's reads are, from the same place. Readers that one change wakes go on one after another.
 */
export function retryingFeed(feed: ChangeFeed, turns: ReadTurns, options: RetryOptions): FeedReader {
  const last = retrying(options);
  const loop = new LoopTurns();
  return {
    reaches: (...places) => feed.reaches(...places),
    read: async (place, size, identity, signal) => {
      const ask = (limited: AbortSignal) => feed.read(place, size, identity, limited);
      const changed = await last(signal, ask, size.waitMs);
      if (size.waitMs > 0 && changed.keys.length > 0) await loop.next();
      signal.throwIfAborted();
      return changed;
    },
    rows: (keys, plan, size, signal, found) =>
      lookUps(keys, plan, (rest, bound) =>
        last(signal, (limited) =>
          turns.take({ ...size, patient: false }, limited, async () => {
            const { taken, batch } = await feed.lookUp(rest, bound, size, limited, found);
            return { taken, batch: batch && turns.hold(batch) };
          }),
        ),
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
  ask: (rest: readonly Bookmark[], plan: Plan) => Promise<LookUpResult>,
): AsyncGenerator<Batch, void, undefined> {
  let rest = distinctKeys(keys);
  let bound = plan;
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
    const place = placeTextOf(key);
    if (!byPlace.has(place)) byPlace.set(place, key);
  }
  return [...byPlace.values()];
}

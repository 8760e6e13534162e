import { chain, FIRST_BATCH, NEXT_BATCH } from '../../pipeline/chain.ts';
import type { Batch, ReadBatch } from '../../store/batch.ts';
import { bookmarkOf, KEY, type Bookmark } from '../../store/bookmark.ts';
import { documentAt, endOfDocument } from '../../store/values/bson-array.ts';
import type { ChangedKeys, FeedPlace } from '../../store/change-feed.ts';
import { comparePlaces } from '../../store/values/order.ts';
import type { RowReader, Plan, Size } from '../../store/store.ts';
import type { FeedReader } from '../../store/turns/readers.ts';
import type { WalkPlace } from '../token/feed-cursor.ts';
import { Round } from './round.ts';

/** A walk reads on for this long before it looks for changes. */
const LEG_MS = 1_000;
/** It looks for changes for this long, or this often, when there are always more. */
const DRAIN_MS = 500;
const DRAIN_READS = 8;
/** How long a read waits that is behind although it brings nothing: changes of other sets are passed. */
export const BEHIND_MS = 50;
const LOOK_UP: Size = { rows: 1_000, bytes: FIRST_BATCH.bytes, patient: true };

/** Where a reader is in the log, and how far its walk through the rows has come. A cursor holds both. */
export interface Position {
  readonly place: FeedPlace;
  readonly walk: WalkPlace;
}

/** Where a reader begins or goes on, with what was read from there already: rows of the walk, or keys of the log. */
export interface Start extends Position {
  readonly first?: ReadBatch | ChangedKeys;
}

/** What a reader gets next. Without rows and removals, everything before its position was given. */
export interface Step extends Position {
  /** Whether a copy that has everything before the position equals the set. */
  readonly isUpToDate: boolean;
  /** Whether there is nothing more to read before it waits, where that is not the same. */
  readonly isSettled?: boolean;
  /** Whether the last read of the log came to its end. */
  readonly isAtEnd?: boolean;
  /** The reader releases them. */
  readonly rows?: Batch;
  /** Where a reader goes on that has only the rows up to this one. */
  readonly after?: (row: Bookmark) => Start;
  /** The keys of rows that are gone. */
  readonly removed?: readonly Bookmark[];
}

export interface StepRequest {
  /** In order of id, with nothing but equalities. Its identity is that of the log. */
  readonly plan: Plan;
  /** The most keys of the next read of the log. */
  readonly most: () => number;
  /** How long a reader that is up to date waits for a change. Milliseconds. */
  readonly waitMs: () => number;
  /** Called with the number of keys of each read of the log. */
  readonly onKeys: (keys: number) => void;
  /** A clock in milliseconds. */
  readonly now: () => number;
  readonly reads: AbortSignal;
  /** For reads that wait for changes. */
  readonly waits: AbortSignal;
}

/**
 * First the rest of the walk in order of id, with what changes on the way; then the changes, without an end. Rows are
 * looked up by their changed keys, so each comes in its present state, and a copy that applies all in order converges.
 */
export async function* follow(
  log: FeedReader,
  rows: RowReader,
  { first, ...start }: Start,
  want: StepRequest,
): AsyncGenerator<Step, void, undefined> {
  let { place, walk } = start;
  let [batch, changed] = first && 'keys' in first ? [null, first] : [first ?? null, null];
  let wait = 0;
  try {
    if (!changed) yield { place, walk, isUpToDate: false };
    for (;;) {
      if (!changed && walk !== 'over') {
        const plan = planAt(want.plan, place);
        batch ??= await rows.read(plan, walk ? { after: walk } : {}, NEXT_BATCH, want.reads);
        const end = want.now() + LEG_MS;
        const leg = chain(rows, plan, batch, Infinity, want.reads, () => want.now() >= end);
        batch = null;
        walk = yield* walked(leg, { place, walk });
        yield { place, walk, isUpToDate: false };
      }
      const until = want.now() + DRAIN_MS;
      for (let reads = 0; walk === 'over' || (reads < DRAIN_READS && want.now() < until); reads++) {
        const signal = wait > 0 ? want.waits : want.reads;
        if (!changed) {
          const size = { most: want.most(), waitMs: wait };
          changed = await log.read(place, size, want.plan.identity, signal);
          want.onKeys(changed.keys.length);
        }
        yield* linesOf(log, changed, { place, walk }, want);
        const { next, keys, isUpToDate: isAtEnd } = changed;
        const isUpToDate = walk === 'over' ? await isWhole(log, changed, want) : changed.isUpToDate;
        place = next;
        changed = null;
        yield { place, walk, isUpToDate: isUpToDate && walk === 'over', isAtEnd: isAtEnd && walk === 'over' };
        if (walk !== 'over' && isUpToDate) break;
        wait = walk !== 'over' ? 0 : isUpToDate ? want.waitMs() : keys.length === 0 ? BEHIND_MS : 0;
      }
    }
  } finally {
    batch?.release();
  }
}

/**
 * Whether a copy that has the rows of these keys is up to date: only if nothing has changed since they were looked up. Else
 * they may be a part of a transaction, whose other rows are not among them.
 */
export async function isWhole(
  log: Pick<FeedReader, 'read'>,
  { keys, next, isUpToDate }: ChangedKeys,
  { plan, reads }: Pick<StepRequest, 'plan' | 'reads'>,
): Promise<boolean> {
  if (keys.length === 0 || !isUpToDate) return isUpToDate;
  const later = await log.read(next, { most: 1, waitMs: 0 }, plan.identity, reads);
  return later.keys.length === 0 && later.isUpToDate;
}

/** The rows of a leg. Returns how far the walk has come. */
async function* walked(
  leg: AsyncIterable<Batch>,
  { place, walk: from }: Position,
): AsyncGenerator<Step, WalkPlace, undefined> {
  let walk = from;
  for await (const rows of leg) {
    const { last, more } = rows;
    yield { place, walk, isUpToDate: false, rows, after: (row) => ({ place, walk: row }) };
    walk = more ? last : 'over';
  }
  return walk;
}

/** The rows and removals of the keys that were read at a position. */
export async function* linesOf(
  log: Pick<FeedReader, 'rows'>,
  changed: ChangedKeys,
  at: Position,
  want: Pick<StepRequest, 'plan' | 'reads'>,
): AsyncGenerator<Step, void, undefined> {
  const { next, found } = changed;
  const plan = planAt(want.plan, next);
  // The walk will meet these rows. Only rows are left out for that: removals never are.
  const isToCome = (id: Bookmark) =>
    at.walk !== 'over' && (at.walk === null || comparePlaces(id, at.walk) > 0);
  for (let round = new Round(changed.keys); round.keys.length > 0; round = round.next) {
    for await (const batch of log.rows(round.keys, plan, LOOK_UP, want.reads, found)) {
      try {
        for (const { batch: rows, ids } of piecesOf(batch, (id) => round.isNow(id, isToCome(id)))) {
          const after = (row: Bookmark) => ({
            ...at,
            first: { ...changed, keys: round.keysAfter(ids, row) },
          });
          yield { ...at, isUpToDate: false, rows, after };
          round.written(ids);
        }
      } finally {
        batch.release();
      }
    }
    const removed = round.keys;
    if (removed.length > 0) yield { ...at, isUpToDate: false, removed };
  }
}

/** Every read sees all changes before a place: see `FeedPlace.seen`. */
function planAt(plan: Plan, { seen }: FeedPlace): Plan {
  return seen === undefined ? plan : { ...plan, since: seen };
}

/** Rows of a batch that stand side by side, with their ids. */
interface Piece {
  readonly batch: Batch;
  readonly ids: readonly Bookmark[];
}

/** The rows of a batch that pass, in pieces, each in the place where the store put it. The batch stays its owner's. */
function piecesOf(batch: Batch, passes: (id: Bookmark) => boolean): readonly Piece[] {
  const bytes = batch.slot.bytes(batch.start + batch.length);
  const pieces: Piece[] = [];
  let ids: Bookmark[] = [];
  let from = batch.start;
  const end = (to: number) => {
    const last = ids.at(-1);
    if (last) pieces.push({ ids, batch: part(batch, from, to, ids.length, last) });
    ids = [];
  };
  for (let at = batch.start; at < bytes.length;) {
    const document = documentAt(bytes, at);
    const next = endOfDocument(bytes, document);
    const id = bookmarkOf(bytes.subarray(document, next), { sort: KEY });
    if (!passes(id)) {
      end(at);
      from = next;
    } else ids.push(id);
    at = next;
  }
  end(bytes.length);
  return pieces;
}

function part({ slot }: Batch, start: number, end: number, rows: number, last: Bookmark): Batch {
  return { slot, start, length: end - start, rows, last, more: true, release: () => undefined };
}

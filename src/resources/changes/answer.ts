import { CheckpointEncoder, rowsOfSlice } from '../../pipeline/checkpoints.ts';
import type { RowEncoder } from '../../rows/rows.ts';
import type { Batch } from '../../store/batch.ts';
import { KEY, type Bookmark } from '../../store/bookmark.ts';
import type { FeedPlace } from '../../store/change-feed.ts';
import { firstAbort } from '../../store/deadline.ts';
import type { RowReader, Plan } from '../../store/store.ts';
import type { FeedReader } from '../../store/readers.ts';
import { encodeFeedCursor } from '../token/feed-cursor.ts';
import { follow, type Position, type Start, type Step, type Want } from './follow.ts';
import { feedLines, removedLine } from './lines.ts';
import type { FeedSums, Standing } from './page.ts';

/** What was sent is followed by a checkpoint within this time, when nothing more comes. */
const SETTLE_MS = 1_000;
/** A checkpoint after this number of lines costs nothing, where the place has just moved on. */
const MANY_LINES = 5_000;
/**
 * Keys of a read: as many as the reader takes in a moment, so that a checkpoint follows soon. Only its own time counts:
 * a server of a thousand others would end at one key a read, and be slower still.
 */
const [FIRST_KEYS, MOST_KEYS] = [250, 1_000];

/** When a feed ends of itself. */
export interface FeedEnd {
  /** Whether a checkpoint comes before the feed waits, or walks. */
  readonly opens: boolean;
  /** Whether it goes on when it has caught up. */
  readonly follows: boolean;
  /** How long it waits for the first change when there is none. Milliseconds. */
  readonly waitMs: number;
  /** The most keys. */
  readonly limit: number;
}

export interface FollowedSet {
  readonly collection: string;
  readonly plan: Plan;
  readonly rows: RowReader;
  readonly changes: FeedReader;
}

/** What an answer follows: one set, or several (see several.ts). */
export interface Followed {
  /** The steps. `from`: where the set of the last step goes on; at the beginning, the first set. */
  steps(from: Start, want: Omit<Want, 'plan'>): AsyncGenerator<Step, void, undefined>;
  /** The cursor when the set of the last step is at a position. Undefined: it is too long. */
  cursorAt(position: Position): string | undefined;
  /** The line of a row of that set that is gone. */
  removedLine(id: Bookmark): string;
}

export function oneSet(set: FollowedSet): Followed {
  const { plan, rows, changes } = set;
  return {
    steps: (from, want) => follow(changes, rows, from, { plan, ...want }),
    cursorAt: (position) => cursorOf(set, position),
    removedLine,
  };
}

/** The cursor of one set. Undefined: it is too long. */
export function cursorOf({ collection, plan }: FollowedSet, { place, walk }: Position): string | undefined {
  return encodeFeedCursor(collection, plan, { place, walk, identity: plan.identity });
}

/** How many keys were read before an answer began. */
export function keysIn({ first }: Start): number {
  return first && 'keys' in first ? first.keys.length : 0;
}

export interface AnswerOptions {
  readonly followed: Followed;
  readonly end: FeedEnd;
  /** A clock in milliseconds. */
  readonly now: () => number;
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
  /** A feed that has nothing to send sends a checkpoint after this time. Milliseconds. */
  readonly heartbeatMs: number;
  /** What the same response has sent before. */
  readonly sums?: FeedSums;
  /** Whether a feed that follows ends here, because its reader waits for changes in another way. Never by default. */
  readonly mayRest?: (place: FeedPlace) => boolean;
}

/** The order that a feed's batches have for the pump: what continues after a row needs its id alone. */
export const BY_ID = { sort: KEY };

const NOTHING = new Uint8Array(0);

/** A batch without rows and without memory, for what an encoder writes between rows. */
const EMPTY: Batch = {
  slot: { address: 0, capacity: 0, bytes: () => NOTHING, release: () => undefined },
  ...{ start: 0, length: 0, rows: 0, last: null, more: true },
  release: () => undefined,
};

export type FeedAnswer = ReturnType<typeof feedAnswer>;

/** The answer to a reader that begins at `start`, with checkpoints between the lines of `lines`. */
export function feedAnswer(
  lines: RowEncoder,
  start: Start,
  { followed, end, now, stopping, heartbeatMs, sums, mayRest }: AnswerOptions,
) {
  const waitEnd = now() + end.waitMs;
  let at: Step = { place: start.place, walk: start.walk, isUpToDate: false };
  let cursor = '';
  let [isOpening, isCutShort] = [end.opens, false];
  /** Whether the last control line said that the reader is up to date. */
  let isKnownUpToDate = false;
  let removed = sums?.removed ?? 0;
  let rest: Standing | null = null;
  let keys = keysIn(start);
  let [most, linesOfRead, takenMs] = [FIRST_KEYS, 0, 0];

  /** Continues after a place only if it fits: an earlier place is always right, too. */
  const cursorAt = (position: Position): string => (cursor = followed.cursorAt(position) ?? cursor);
  cursorAt(at);

  const encoder = new CheckpointEncoder(lines, {
    ...{ plan: BY_ID, ...(sums && { sums }) },
    cursorOf: (row) => cursorAt(at.after?.(row) ?? at),
    start: () => cursorAt(at),
    now,
    form: feedLines(() => {
      isKnownUpToDate = at.isUpToDate;
      return { removed, isUpToDate: at.isUpToDate, cursor: cursorAt(at), isCutShort };
    }),
  });

  function* checkpoint(): Generator<Batch, void, undefined> {
    encoder.want();
    yield EMPTY;
  }

  /** Milliseconds until a checkpoint is due. A reader that is up to date soon learns that it is. */
  const dueIn = (): number => {
    const { lines: count, at: since } = encoder.sinceCheckpoint;
    if (count >= MANY_LINES) return 0;
    const isNews = at.isUpToDate && (count > 0 || !isKnownUpToDate);
    return since + (isNews ? Math.min(SETTLE_MS, heartbeatMs) : heartbeatMs) - now();
  };

  /** Where a reader that follows is when it was sent everything, and knows it. */
  const restAt = (): Standing | null => {
    const { place, isUpToDate } = at;
    if (!end.follows || !isUpToDate || !isKnownUpToDate || encoder.sinceCheckpoint.lines > 0) return null;
    if (mayRest?.(place) !== true) return null;
    return { at: { place, isUpToDate, cursor: cursorAt(at) }, sums: { ...encoder.sums, removed } };
  };

  const isDone = (): boolean => {
    if (end.follows) return stopping.aborted;
    if (keys >= end.limit) return true;
    return (at.isSettled ?? at.isUpToDate) && (keys > 0 || now() >= waitEnd || stopping.aborted);
  };

  function* send(batch: Batch, count: number): Generator<Batch, void, undefined> {
    const begun = now();
    yield batch;
    takenMs += now() - begun;
    linesOfRead += count;
  }

  function* arrive(): Generator<Batch, void, undefined> {
    if (linesOfRead > 0) most = Math.min(MOST_KEYS, rowsOfSlice(linesOfRead, takenMs, most));
    [linesOfRead, takenMs] = [0, 0];
    if (isOpening || dueIn() <= 0) yield* checkpoint();
    isOpening = false;
  }

  async function* batches(from: Start, signal: AbortSignal): AsyncGenerator<Batch, void, undefined> {
    const left = new AbortController();
    const waits = firstAbort([signal, stopping], left.signal); // a read that waits for changes ends when the server stops
    const want = {
      ...{ now, reads: signal, waits },
      onKeys: (count: number) => void (keys += count),
      most: () => Math.min(most, end.limit - keys),
      waitMs: () => Math.max(0, Math.min(dueIn(), end.follows ? Infinity : waitEnd - now())),
    };
    try {
      for await (at of followed.steps(from, want)) {
        if (at.rows) yield* send(at.rows, at.rows.rows);
        else if (at.removed) {
          for (const id of at.removed) encoder.say(followed.removedLine(id));
          removed += at.removed.length;
          yield* send(EMPTY, at.removed.length);
        } else {
          yield* arrive();
          if (isDone()) break;
          if ((rest = restAt())) return;
        }
      }
      isCutShort = end.follows;
    } catch (error) {
      if (signal.aborted || !stopping.aborted) throw error;
      isCutShort = end.follows || !at.isUpToDate;
    } finally {
      left.abort();
    }
    if (isCutShort) yield* checkpoint();
  }

  return {
    /** It writes checkpoints between the batches. */
    encoder,
    /** The batches to their end, for the pump. They also end when the server stops. */
    batches: (signal: AbortSignal) => batches(start, signal),
    /** The batches after a row of the batch that the pump had: its reader stalled there. */
    after: (row: Bookmark, signal: AbortSignal) => batches(at.after?.(row) ?? at, signal),
    /** Where the reader is when the batches ended because it may rest. */
    get rest(): Standing | null {
      return rest;
    },
  };
}

import { CheckpointEncoder, rowsOfSlice } from '../../pipeline/checkpoints.ts';
import type { RowEncoder } from '../../rows/rows.ts';
import type { Batch } from '../../store/batch.ts';
import { KEY, type Bookmark } from '../../store/bookmark.ts';
import { firstAbort } from '../../store/turns/deadline.ts';
import type { RowReader, Plan } from '../../store/store.ts';
import type { FeedReader } from '../../store/turns/readers.ts';
import { encodeFeedCursor } from '../token/feed-cursor.ts';
import { follow, type Position, type Start, type Step, type StepRequest } from './follow.ts';
import { feedLines, removedLine } from './lines.ts';
import type { FeedSums, ReaderPosition } from './page.ts';

/** What was sent is followed by a checkpoint within this time, when nothing more comes. */
const SETTLE_MS = 1_000;
/** A checkpoint after this number of lines costs nothing, where the place has just moved on. */
const MANY_LINES = 5_000;
/**
 * Keys of a read: as many as the reader takes in a moment, so that a checkpoint follows soon. Only its own time counts:
 * a server of a thousand others would end at one key a read, and be slower still.
 */
const FIRST_KEYS = 250;
const MOST_KEYS = 1_000;

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

export interface FollowedResource {
  readonly collection: string;
  readonly plan: Plan;
  readonly rows: RowReader;
  readonly changes: FeedReader;
}

/** What an answer follows: one set, or several (see several.ts). */
export interface FollowedRows {
  /** The steps. `from`: where the set of the last step goes on; at the beginning, the first set. */
  steps(from: Start, want: Omit<StepRequest, 'plan'>): AsyncGenerator<Step, void, undefined>;
  /** The cursor when the set of the last step is at a position. Undefined: it is too long. */
  cursorAt(position: Position): string | undefined;
  /** The line of a row of that set that is gone. */
  removedLine(id: Bookmark): string;
}

export function oneFeed(set: FollowedResource): FollowedRows {
  const { plan, rows, changes } = set;
  return {
    steps: (from, want) => follow(changes, rows, from, { plan, ...want }),
    cursorAt: (position) => cursorOf(set, position),
    removedLine,
  };
}

/** The cursor of one set. Undefined: it is too long. */
export function cursorOf(
  { collection, plan }: FollowedResource,
  { place, walk }: Position,
): string | undefined {
  return encodeFeedCursor(collection, plan, { place, walk, identity: plan.identity });
}

/** How many keys were read before an answer began. */
export function keysIn({ first }: Start): number {
  return first && 'keys' in first ? first.keys.length : 0;
}

export interface AnswerOptions {
  readonly followed: FollowedRows;
  readonly end: FeedEnd;
  /** A clock in milliseconds. */
  readonly now: () => number;
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
  /** A feed that has nothing to send sends a checkpoint after this time. Milliseconds. */
  readonly heartbeatMs: number;
  /** What the same response has sent before. */
  readonly sums?: FeedSums;
  /** Whether a feed that follows ends at the end of the log, because its reader waits for changes in another way. By default never. */
  readonly rests?: (isUpToDate: boolean) => boolean;
}

/** The order that a feed's batches have for the pump: what continues after a row needs its id alone. */
export const BY_ID = { sort: KEY };

const NOTHING = new Uint8Array(0);

/** A batch without rows and without memory, for what an encoder writes between rows. */
const EMPTY: Batch = {
  slot: { address: 0, capacity: 0, bytes: () => NOTHING, release: () => undefined },
  start: 0,
  length: 0,
  rows: 0,
  last: null,
  more: true,
  release: () => undefined,
};

/** The answer to a reader that begins at a place, with checkpoints between its lines. */
export class FeedAnswer {
  /** It writes checkpoints between the batches. */
  readonly encoder: CheckpointEncoder;
  readonly #options: AnswerOptions;
  readonly #start: Start;
  /** When a feed that brings nothing has waited long enough. */
  readonly #waitEnd: number;
  #at: Step;
  #cursor = '';
  #isOpening: boolean;
  #isCutShort = false;
  /** Whether the last control line said that the reader is up to date. */
  #isKnownUpToDate = false;
  #removed: number;
  #rest: ReaderPosition | null = null;
  /** Whether the log was read, and by this answer unless it is the first one of its response. */
  #hasRead: boolean;
  /** The keys that were read. */
  #keys: number;
  /** Of the read of the log under way: the most keys, the lines that were sent, and how long the reader took for them. */
  #most = FIRST_KEYS;
  #lines = 0;
  #takenMs = 0;

  constructor(lines: RowEncoder, start: Start, options: AnswerOptions) {
    const { end, now, sums } = options;
    this.#options = options;
    this.#start = start;
    this.#waitEnd = now() + end.waitMs;
    this.#at = { place: start.place, walk: start.walk, isUpToDate: false };
    this.#isOpening = end.opens;
    this.#removed = sums?.removed ?? 0;
    this.#keys = keysIn(start);
    this.#hasRead = sums === undefined;
    this.#cursorAt(this.#at);
    this.encoder = new CheckpointEncoder(lines, {
      plan: BY_ID,
      ...(sums && { sums }),
      cursorOf: (row) => this.#cursorAt(this.#at.after?.(row) ?? this.#at),
      start: () => this.#cursorAt(this.#at),
      now,
      form: feedLines(() => this.#state()),
    });
  }

  /** The batches to their end, for the pump. They also end when the server stops. */
  batches(signal: AbortSignal): AsyncGenerator<Batch, void, undefined> {
    return this.#batches(this.#start, signal);
  }

  /** The batches after a row of the batch that the pump had: its reader stalled there. */
  after(row: Bookmark, signal: AbortSignal): AsyncGenerator<Batch, void, undefined> {
    return this.#batches(this.#at.after?.(row) ?? this.#at, signal);
  }

  /** Where the reader is when the batches ended because it may rest. */
  get rest(): ReaderPosition | null {
    return this.#rest;
  }

  async *#batches(from: Start, signal: AbortSignal): AsyncGenerator<Batch, void, undefined> {
    const { followed, end, stopping } = this.#options;
    const left = new AbortController();
    const waits = firstAbort([signal, stopping], left.signal); // a read that waits for changes ends when the server stops
    try {
      for await (this.#at of followed.steps(from, this.#want(signal, waits))) {
        if (this.#at.rows || this.#at.removed) {
          yield* this.#send(this.#at);
          continue;
        }
        const mayRest = this.#mayRest();
        yield* this.#arrive();
        if (this.#isDone()) break;
        if (mayRest) {
          this.#rest = this.#position();
          return;
        }
      }
      this.#isCutShort = end.follows;
    } catch (error) {
      if (signal.aborted || !stopping.aborted) throw error;
      this.#isCutShort = end.follows || !this.#at.isUpToDate;
    } finally {
      left.abort();
    }
    if (this.#isCutShort) yield* this.#checkpoint();
  }

  #want(reads: AbortSignal, waits: AbortSignal): Omit<StepRequest, 'plan'> {
    const { end, now } = this.#options;
    return {
      now,
      reads,
      waits,
      onKeys: (count) => {
        this.#keys += count;
        this.#hasRead = true;
      },
      most: () => Math.min(this.#most, end.limit - this.#keys),
      waitMs: () => Math.max(0, Math.min(this.#dueIn(), end.follows ? Infinity : this.#waitEnd - now())),
    };
  }

  /** Sends the lines of a step. */
  *#send({ rows, removed = [] }: Step): Generator<Batch, void, undefined> {
    const { followed, now } = this.#options;
    for (const id of removed) this.encoder.say(followed.removedLine(id));
    this.#removed += removed.length;
    const begun = now();
    yield rows ?? EMPTY;
    this.#takenMs += now() - begun;
    this.#lines += removed.length + (rows?.rows ?? 0);
  }

  /** Everything before a place was sent. */
  *#arrive(): Generator<Batch, void, undefined> {
    if (this.#lines > 0)
      this.#most = Math.min(MOST_KEYS, rowsOfSlice(this.#lines, this.#takenMs, this.#most));
    this.#lines = 0;
    this.#takenMs = 0;
    if (this.#isOpening || this.#dueIn() <= 0) yield* this.#checkpoint();
    this.#isOpening = false;
  }

  *#checkpoint(): Generator<Batch, void, undefined> {
    this.encoder.want();
    yield EMPTY;
  }

  /** Milliseconds until a checkpoint is due. A reader that is up to date soon learns that it is. */
  #dueIn(): number {
    const { heartbeatMs, now } = this.#options;
    const { lines, at } = this.encoder.sinceCheckpoint;
    if (lines >= MANY_LINES) return 0;
    const isNews = this.#at.isUpToDate && (lines > 0 || !this.#isKnownUpToDate);
    return at + (isNews ? Math.min(SETTLE_MS, heartbeatMs) : heartbeatMs) - now();
  }

  #isDone(): boolean {
    const { end, now, stopping } = this.#options;
    if (end.follows) return stopping.aborted;
    if (this.#keys >= end.limit) return true;
    const { isUpToDate, isSettled = isUpToDate } = this.#at;
    return isSettled && (this.#keys > 0 || now() >= this.#waitEnd || stopping.aborted);
  }

  /** Whether the reader was at the end of the log a moment ago. */
  #mayRest(): boolean {
    const { end, rests } = this.#options;
    const isAtEnd = this.#hasRead && this.#at.isAtEnd === true && this.#takenMs < SETTLE_MS;
    return isAtEnd && end.follows && rests?.(this.#at.isUpToDate) === true;
  }

  /** Where the reader is, and whether it knows that it is up to date. */
  #position(): ReaderPosition {
    const { place, isUpToDate } = this.#at;
    const isKnown = isUpToDate && this.#isKnownUpToDate && this.encoder.sinceCheckpoint.lines === 0;
    const sums = { ...this.encoder.sums, removed: this.#removed };
    return { at: { place, isUpToDate: isKnown, cursor: this.#cursorAt(this.#at) }, sums };
  }

  /** What a control line says of the present place. */
  #state() {
    const { isUpToDate } = this.#at;
    this.#isKnownUpToDate = isUpToDate;
    return {
      removed: this.#removed,
      isUpToDate,
      cursor: this.#cursorAt(this.#at),
      isCutShort: this.#isCutShort,
    };
  }

  /** Continues after a place only if it fits: an earlier place is always right, too. */
  #cursorAt(position: Position): string {
    return (this.#cursor = this.#options.followed.cursorAt(position) ?? this.#cursor);
  }
}

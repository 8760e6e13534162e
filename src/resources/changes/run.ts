import type { RowEncoder } from '../../rows/rows.ts';
import { KEY, type Bookmark } from '../../store/bookmark.ts';
import type { Batch } from '../../store/batch.ts';
import type { ChangedKeys, FeedPlace } from '../../store/change-feed.ts';
import { comparePlaces } from '../../store/order.ts';
import type { Plan } from '../../store/store.ts';
import { chain, NEXT_BATCH } from '../../pipeline/chain.ts';
import { CheckpointEncoder } from '../../pipeline/checkpoints.ts';
import { encodeFeedCursor, type WalkPlace } from './cursor.ts';
import { feedLines, removedLine, type FeedState } from './lines.ts';
import { LEG_MS, LEG_ROWS, LOOK_UP, Pace } from './schedule.ts';
import { PendingKeys } from './pending.ts';
import { EMPTY, piecesOf } from './pieces.ts';
import { ReadSize } from './read-size.ts';
import type { FeedOptions } from './run-options.ts';
import { untilStopped } from './until-stopped.ts';
import { abortedByEither } from './aborted-by-either.ts';

/**
 * What one answer tells of a set: first, if its cursor is of a walk, the rows in order of id, with what changes on the
 * way; then the changes. A copy that applies rows and removals in this order converges. Rows are looked up when their
 * keys have changed, so each comes in its present state.
 *
 * A source of batches for the pump. What was not written when a reader stalled is looked up again.
 */
export class FeedRun {
  readonly encoder: CheckpointEncoder;
  readonly #options: FeedOptions;
  readonly #pace: Pace;
  #place: FeedPlace;
  #walk: WalkPlace;
  #cursor: string;
  /** What was read: keys to look up, and the place behind them. */
  #changed: ChangedKeys | null = null;
  readonly #pending = new PendingKeys();
  /** What the pump has now: rows of the walk, or rows with these ids. */
  #sending: 'walk' | readonly Bookmark[] | null = null;
  #firstBatch: Batch | null = null;
  /** Whether a checkpoint is due in any case: before what may wait, and where a reader has no place yet. */
  #isOpening: boolean;
  #isUpToDate = false;
  #isCutShort = false;
  /** Whether the last read brought nothing. */
  #isIdle = false;
  #removed = 0;
  #given = 0;
  readonly #size: ReadSize;

  constructor(lines: RowEncoder, options: FeedOptions) {
    const { plan, from, end, now } = options;
    this.#options = options;
    this.#size = new ReadSize(now);
    this.#place = from.place;
    this.#walk = from.walk;
    this.#cursor = encodeFeedCursor(options.collection, plan, from) ?? '';
    this.#pace = new Pace(options, () => this.encoder.sinceCheckpoint);
    this.#isOpening = end.opens;
    this.encoder = new CheckpointEncoder(lines, {
      plan,
      cursorOf: (last) => this.#cursorAfter(last),
      start: () => this.#cursorAfter(null),
      now,
      form: feedLines(() => this.#state()),
    });
  }

  /** For a control line that is about to be written. */
  #state(): FeedState {
    this.#pace.told(this.#isUpToDate);
    return {
      removed: this.#removed,
      isUpToDate: this.#isUpToDate,
      cursor: this.#cursorAfter(null),
      isCutShort: this.#isCutShort,
    };
  }

  /** What was read before the answer began, so that what is wrong with the store is told in its status. */
  begin(first: Batch | ChangedKeys): void {
    if ('keys' in first) this.#take(first);
    else this.#firstBatch = first;
  }

  /** The batches to their end. They also end when the server stops while a read of the store hangs. */
  batches(signal: AbortSignal): AsyncGenerator<Batch, void, undefined> {
    return untilStopped(
      (limited) => this.#batches(limited),
      this.#options.stopping,
      signal,
      () => {
        this.#isUpToDate = false;
        this.#isCutShort = true;
        this.encoder.want();
        return EMPTY;
      },
    );
  }

  async *#batches(signal: AbortSignal): AsyncGenerator<Batch, void, undefined> {
    try {
      for (;;) {
        yield* this.#deliver(signal);
        yield* this.#checkpoint();
        if (this.#isDone()) {
          if (this.#isCutShort) yield* this.#wanted();
          return;
        }
        if (this.#walk !== 'over' && this.#pace.isDrained) yield* this.#leg(signal);
        else await this.#read(signal);
      }
    } finally {
      this.#firstBatch?.release();
      this.#firstBatch = null;
    }
  }

  /** The batches after a row of the batch that the pump had: its reader stalled there. */
  after(row: Bookmark, signal: AbortSignal): AsyncGenerator<Batch, void, undefined> {
    if (this.#sending === 'walk') this.#walk = row;
    else if (this.#sending) this.#pending.written(this.#sending, row);
    this.#sending = null;
    return this.batches(signal);
  }

  /** Continues after a place only if it fits: an earlier place is always right, too. */
  #cursorAfter(last: Bookmark | null): string {
    const { collection, plan, from } = this.#options;
    const walk = this.#sending === 'walk' && last ? last : this.#walk;
    const place = { place: this.#place, walk, identity: from.identity };
    return (this.#cursor = encodeFeedCursor(collection, plan, place) ?? this.#cursor);
  }

  *#checkpoint(): Generator<Batch, void, undefined> {
    if (this.#isOpening || this.#pace.isCheckpointDue(this.#isUpToDate)) yield* this.#wanted();
    this.#isOpening = false;
  }

  *#wanted(): Generator<Batch, void, undefined> {
    this.encoder.want();
    yield EMPTY;
  }

  #isDone(): boolean {
    const { end, stopping } = this.#options;
    if (end.follows) return (this.#isCutShort = stopping.aborted);
    if (this.#given >= end.limit) return true;
    return this.#isUpToDate && (this.#given > 0 || this.#pace.hasWaited || stopping.aborted);
  }

  /** Rows in order of id, for a while. Rows that change meanwhile come afterwards. */
  async *#leg(signal: AbortSignal): AsyncGenerator<Batch, void, undefined> {
    const { rows, now } = this.#options;
    const plan = this.#planSince(this.#place);
    const from = this.#walk && this.#walk !== 'over' ? { after: this.#walk } : {};
    const first = this.#firstBatch ?? (await rows.read(plan, from, NEXT_BATCH, signal));
    this.#firstBatch = null;
    const until = now() + LEG_MS;
    for await (const batch of chain(rows, plan, first, LEG_ROWS, signal)) {
      const { last, more } = batch;
      this.#sending = 'walk';
      yield batch;
      this.#sending = null;
      this.#walk = more ? last : 'over';
      if (now() >= until) break;
    }
    this.#pace.drain();
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { changes, end, from, stopping } = this.#options;
    const waitMs = this.#pace.waitMs({
      isUpToDate: this.#isUpToDate,
      isWalking: this.#walk !== 'over',
      isIdle: this.#isIdle,
    });
    const most = Math.min(this.#size.most, end.limit - this.#given);
    const changed = await abortedByEither(signal, waitMs > 0 ? stopping : null, (either) =>
      changes.read(this.#place, { most, waitMs }, from.identity, either),
    );
    this.#pace.drained({ isAll: false });
    if (changed) this.#take(changed);
  }

  #take(changed: ChangedKeys): void {
    this.#changed = changed;
    this.#given += changed.keys.length;
    this.#pending.take(changed.keys);
    this.#isIdle = changed.keys.length === 0;
    this.#isUpToDate = false;
  }

  /** The rows and removals of the keys that were read. The place is then behind them. */
  async *#deliver(signal: AbortSignal): AsyncGenerator<Batch, void, undefined> {
    const [changed, count] = [this.#changed, this.#pending.size];
    if (!changed) return;
    while (this.#pending.size > 0) {
      yield* this.#lookUp(changed.next, signal);
      const removals = this.#pending.removals();
      for (const id of removals) this.encoder.say(removedLine(id));
      this.#removed += removals.length;
      if (removals.length > 0) yield* this.#size.given(EMPTY);
    }
    this.#size.delivered(count);
    this.#place = changed.next;
    this.#isUpToDate = changed.isUpToDate && this.#walk === 'over';
    if (changed.isUpToDate) this.#pace.drained({ isAll: true });
    this.#changed = null;
  }

  /** The rows of pending keys. */
  async *#lookUp(next: FeedPlace, signal: AbortSignal): AsyncGenerator<Batch, void, undefined> {
    const { changes } = this.#options;
    const [keys, plan] = [this.#pending.lookUp(), this.#planSince(next)];
    for await (const batch of changes.rows(keys, plan, next, LOOK_UP, signal)) {
      try {
        for (const piece of piecesOf(batch, (id) => this.#pending.isNow(id, this.#isToCome(id)))) {
          this.#sending = piece.ids;
          yield* this.#size.given(piece.batch);
          this.#pending.written(piece.ids);
          this.#sending = null;
        }
      } finally {
        batch.release();
      }
    }
  }

  /** Whether the walk will still meet a row. Only rows are left out for that: removals never are. */
  #isToCome(id: Bookmark): boolean {
    if (this.#walk === 'over') return false;
    return this.#walk === null || comparePlaces(id, this.#walk) > 0;
  }

  /** Every read sees all that was told before: see `FeedPlace.seen`. */
  #planSince({ seen }: FeedPlace, { plan, from } = this.#options): Plan {
    return {
      ...plan,
      ...(seen !== undefined && { since: seen }),
      ...(from.identity !== undefined && { identity: from.identity }),
    };
  }
}

/** The order that a feed's batches have for the pump: what continues after a row needs its id alone. */
export const BY_ID = { sort: KEY };

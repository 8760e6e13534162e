import { AppError } from '../../base/errors.ts';
import type { Query } from '../../input/query.ts';
import type { RowEncoder, Transcoder } from '../../rows/rows.ts';
import { MAX_CURSOR_BYTES } from '../token/cursor.ts';
import { PARK_AFTER_MS } from '../../pipeline/pump.ts';
import type { Bookmark } from '../../store/bookmark.ts';
import { firstAbort } from '../../store/turns/deadline.ts';
import { cursorOf, keysIn, type FollowedRows } from './answer.ts';
import { framedLines } from './server-sent-events.ts';
import type { BegunWalk } from './feed.ts';
import { follow, type Position, type Start, type Step, type StepRequest } from './follow.ts';
import { removedLine } from './lines.ts';

/** What separates the cursors of the sets in the cursor of all. No cursor has this character. */
export const BETWEEN_CURSORS = '.';

/** A set, and what is asked of it: its filters and `fields`. */
interface OneFeed {
  readonly name: string;
  readonly query: Query;
}

/** One of several sets that an answer follows. */
interface NamedFeed extends BegunWalk, OneFeed {
  /** The most keys. */
  readonly limit: number;
}

/**
 * Follows sets: their steps as they come, so that none waits for another. A set is read on only when its last step was
 * taken, so a reader that stalls stalls all of them, and each keeps one batch at most.
 */
export class SeveralFeeds implements FollowedRows {
  /** Where the first of them begins. */
  readonly start: Start;
  /** Closing it ends the listening to `stops`. */
  readonly lines: RowEncoder;
  /** Aborted with the first of `stops`. */
  readonly stopping: AbortSignal;
  readonly #runs: readonly FeedOfSeveral[];
  /** The one of the last step. */
  #current: FeedOfSeveral;

  /** `stops`: see AnswerOptions. */
  constructor(
    sets: readonly NamedFeed[],
    stops: readonly AbortSignal[],
    transcoder: Pick<Transcoder, 'encoder'>,
  ) {
    this.#runs = sets.map((set) => new FeedOfSeveral(set, transcoder));
    const [first] = this.#runs;
    if (!first) throw new TypeError('no sets');
    this.#current = first;
    this.start = first.at;
    const closed = new AbortController();
    this.stopping = firstAbort(stops, closed.signal);
    this.lines = {
      encode: (...call) => this.#current.lines.encode(...call),
      cut: () => this.#current.lines.cut(),
      close: () => {
        for (const { lines } of this.#runs) lines.close();
        closed.abort(new Error('the answer has ended'));
      },
    };
  }

  async *steps(from: Start, want: Omit<StepRequest, 'plan'>): AsyncGenerator<Step, void, undefined> {
    this.#current.at = from;
    for (let isParked = true; isParked;) {
      isParked = false;
      const steps = this.#merged(want);
      const park = () => {
        isParked = true;
        void steps.return();
      };
      for await (const [n, step] of steps) {
        // A reader that stalls at rows is parked by the pump, which does not know of rows that others have read.
        const timer = step.rows ? undefined : setTimeout(park, PARK_AFTER_MS);
        try {
          yield this.#taken(n, step);
        } finally {
          clearTimeout(timer);
        }
      }
    }
  }

  cursorAt(position: Position): string | undefined {
    const cursors = this.#runs.map((run) => cursorOf(run.set, run === this.#current ? position : run.at));
    const cursor = cursors.join(BETWEEN_CURSORS);
    return cursors.includes(undefined) || cursor.length > MAX_CURSOR_BYTES ? undefined : cursor;
  }

  removedLine(id: Bookmark): string {
    return this.#current.removedLine(id);
  }

  /** The steps of all, until they end or their reader leaves. */
  #merged(want: Omit<StepRequest, 'plan'>): ReturnType<typeof merged> {
    const left = new AbortController();
    const reads = firstAbort([want.reads], left.signal);
    const waits = firstAbort([want.waits], left.signal);
    const all = this.#runs.map((run) => run.steps({ ...want, reads, waits }));
    return merged(all, () => left.abort(new Error('the reader has left')));
  }

  /** A step that the reader gets now. It is up to date, or settled, only when all sets are. */
  #taken(n: number, step: Step): Step {
    this.#current = this.#runs[n] ?? this.#current;
    this.#current.at = step;
    const isUpToDate = this.#runs.every(({ at }) => at.isUpToDate);
    const isSettled = this.#runs.every(({ at }) => at.isSettled ?? at.isUpToDate);
    return { ...step, isUpToDate, isSettled };
  }
}

/** One of the sets: where it is, and its lines, which name it. */
class FeedOfSeveral {
  readonly set: NamedFeed;
  readonly lines: RowEncoder;
  /** Where it is. A step that was read and not taken yet does not count. */
  at: Start & Partial<Pick<Step, 'isUpToDate' | 'isSettled'>>;
  readonly #head: string;
  /** The keys that it may still read. Below 0 after a stall, when some were read again. */
  #left: number;

  constructor(set: NamedFeed, transcoder: Pick<Transcoder, 'encoder'>) {
    this.set = set;
    this.at = set.start;
    this.#left = set.limit - keysIn(set.start);
    this.#head = `{"resource":${JSON.stringify(set.name)},`;
    const ofRow = Buffer.from(`${this.#head}"row":`);
    const framing = { head: () => ofRow, end: Buffer.from('}\n') };
    this.lines = framedLines(transcoder.encoder('lines', set.shown), framing);
  }

  /** The steps from where it is, up to its share of keys. */
  async *steps(want: Omit<StepRequest, 'plan'>): AsyncGenerator<Step, void, undefined> {
    const { plan, rows, changes } = this.set;
    const most = () => Math.max(1, Math.min(want.most(), this.#left));
    const onKeys = (keys: number) => {
      this.#left -= keys;
      if (keys > 0) this.at = { ...this.at, isUpToDate: false, isSettled: false };
      want.onKeys(keys);
    };
    try {
      for await (const step of follow(changes, rows, this.at, { ...want, plan, most, onKeys })) {
        const isFull = !step.rows && !step.removed && this.#left <= 0;
        yield isFull ? { ...step, isSettled: true } : step;
        if (isFull) return;
      }
    } catch (error) {
      throw want.reads.aborted ? error : ofOneFeed(error, this.set); // a reader that leaves is no error of the set
    }
  }

  removedLine(id: Bookmark): string {
    return this.#head + removedLine(id).slice(1);
  }
}

/** An error that names its set, with the URL of the stream to read anew when the cursor of the set has become useless. */
export function ofOneFeed(error: unknown, { name, query }: OneFeed): unknown {
  if (!(error instanceof AppError)) return error;
  const asked = query.size > 0 ? `?${new URLSearchParams([...query]).toString()}` : '';
  const { code, message, parameter, headers, cause } = error;
  return new AppError(code, `${name}: ${message}`, {
    headers: error.status === 410 ? { ...headers, location: `/${name}/stream${asked}` } : headers,
    cause,
    ...(parameter !== undefined && { parameter: query.has(parameter) ? `${name}.${parameter}` : parameter }),
  });
}

/** The steps of several runs as they come, each with the number of its run. `leave`: ends what runs wait for. */
async function* merged(
  runs: readonly AsyncGenerator<Step, void, undefined>[],
  leave: () => void,
): AsyncGenerator<readonly [n: number, step: Step], void, undefined> {
  const come: { readonly n: number; readonly next: Promise<IteratorResult<Step, void>> }[] = [];
  let wake = (): void => undefined;
  const ask = (n: number, run: (typeof runs)[number]): void => {
    const next = run.next();
    const arrived = () => {
      come.push({ n, next });
      wake();
    };
    next.then(arrived, arrived);
  };
  try {
    for (const [n, run] of runs.entries()) ask(n, run);
    for (let open = runs.length; open > 0;) {
      if (come.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      for (const { n, next } of come.splice(0, 1)) {
        const { value } = await next;
        if (value) yield [n, value];
        else open--;
        const run = runs[n];
        if (run && value) ask(n, run); // what it gave has been taken
      }
    }
  } finally {
    leave();
    await Promise.allSettled(runs.map((run) => run.return()));
    // The reader has left: these are not taken any more.
    for (const { next } of come)
      void next.then(
        ({ value }) => value?.rows?.release(),
        () => undefined,
      );
  }
}

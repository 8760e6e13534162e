import { setTimeout as sleep } from 'node:timers/promises';
import { PARK_AFTER_MS } from '../../pipeline/pump.ts';
import type { Sink } from '../../pipeline/sink.ts';
import type { FeedPlace } from '../../store/change-feed.ts';
import { awaitAtMost, firstAbort, settlesWithin } from '../../store/turns/deadline.ts';
import { LoopTurns } from '../../store/turns/loop-turns.ts';
import type { FeedReader } from '../../store/turns/readers.ts';
import { LatePage } from './late-page.ts';
import type { Page, ReaderPosition, Stop } from './page.ts';
import { PageReader } from './page-reader.ts';
import type { Question } from './question.ts';

/** How long readers are served in a row before the process looks at its sockets and timers. Milliseconds. */
const TURN_MS = 0.3;
/**
 * How long they wait then, when a request came a moment ago, and for how long a page has such pauses: requests get the time.
 * Milliseconds.
 */
const PAUSE_MS = 3;
const MOMENT_MS = 10;
const LONGEST_PAUSES_MS = 400;
/** How long the read behind a page waits at most. Milliseconds. */
const LONGEST_REST_MS = 400;
/** How long those behind the newest page wait at most for the next one, and for each other. Milliseconds. */
const LATE_MS = 250;

/** The response of a follower. */
interface Output {
  readonly sink: Sink;
  /** Called with the number of rows that the response has so far. */
  readonly wrote: (rows: number) => void;
  /** See PumpObserver. */
  readonly parked: () => () => void;
  /** Whether no other reader asks for the same: one alone that is behind reads on by itself. */
  readonly isAlone: () => boolean;
}

/** A follower that was given a page. */
interface PageEntry extends ReaderPosition {
  /** Resolves when the sink has taken it. Null: it has. */
  readonly taken: Promise<unknown> | null;
}

const opened = new WeakMap<FeedReader, Map<string, Pages>>();

/** The pages of a question that has followers. */
export function pagesOf({ changes, name }: Pick<Question, 'changes' | 'name'>): Pages | undefined {
  return opened.get(changes)?.get(name);
}

/**
 * The pages of a question: what changed behind a place is read, looked up and encoded once for all followers that are
 * there, and each writes it with its own checkpoint. Not everything is a page: for a follower that is behind, after lines of
 * many bytes, an error of the store or the end of the server, followers read on by themselves, each from its place.
 */
export class Pages {
  readonly question: Question;
  #followers = 0;
  readonly #closed = new AbortController();
  /** For reads, which also end when the server stops. */
  readonly #reads: AbortSignal;
  readonly #turns = new LoopTurns(
    () => this.question.now(),
    TURN_MS,
    (run) => this.#pause(run),
  );
  /** How many requests had begun at the end of the last turn, and when one was last found to have come. */
  #requests: number;
  #requestedAt = -Infinity;
  /** The end of the newest page, and when it was made. */
  #at: Stop;
  #madeAt: number;
  /** The page behind it. Null: nobody has asked for it. */
  #next: Promise<Page | null> | null = null;
  /** The page of those who are behind the newest one. Null: nobody waits for it. */
  #late: LatePage | null = null;
  readonly #reader: PageReader;

  private constructor(question: Question, at: Stop) {
    const { changes, name, stopping, now, begun } = question;
    this.question = question;
    this.#at = at;
    this.#madeAt = now();
    this.#requests = begun();
    this.#reads = firstAbort([stopping], this.#closed.signal);
    this.#reader = new PageReader(question, this.#reads);
    const others = opened.get(changes) ?? new Map<string, Pages>();
    opened.set(changes, others.set(name, this));
  }

  /**
   * Gives a follower one page after another. Resolves with where it is when it has to read on by itself, after its sink has
   * taken everything. Rejects with the error of the sink or its signal's reason.
   */
  static async follow(question: Question, from: ReaderPosition, output: Output): Promise<ReaderPosition> {
    output.sink.signal.throwIfAborted();
    const pages = pagesOf(question) ?? new Pages(question, from.at);
    pages.#followers++;
    try {
      return await pages.#follow(from, output);
    } finally {
      pages.#followers--;
      if (pages.#followers === 0) pages.#close();
    }
  }

  get size(): number {
    return this.#followers;
  }

  /** Whether a reader at this place misses nothing in the next page. What it gets twice does no harm. */
  reaches(place: FeedPlace): boolean {
    return this.question.changes.reaches(place, this.#at.place);
  }

  async #follow(standing: ReaderPosition, output: Output): Promise<ReaderPosition> {
    for (;;) {
      const given = await this.#give(standing, output);
      if (!given) return standing;
      standing = given;
      if (given.taken && !(await isTakenSoon(given.taken, output.parked))) return standing;
      if (!standing.at.isUpToDate && output.isAlone()) return standing;
    }
  }

  /**
   * Writes the page behind a place, when it is the follower's turn. Null: there is none for it. What waits for the sink
   * afterwards does not hold the page.
   */
  async #give({ at, sums: before }: ReaderPosition, { sink, wrote }: Output): Promise<PageEntry | null> {
    if (this.#reads.aborted) return null;
    const page = await awaitAtMost(null, sink.signal, this.#pageBehind(at));
    await this.#turns.next();
    sink.signal.throwIfAborted();
    if (!page) return null;
    const sums = page.sumsAfter(before);
    wrote(sums.rows);
    const taken = sink.write(page.textWith(sums));
    const flushed = sink.flush();
    return { at: page.at, sums, taken: taken || flushed ? Promise.all([taken, flushed]) : null };
  }

  /** The page behind the newest one, or behind the places of those who are late. */
  #pageBehind(at: Stop): Promise<Page | null> {
    const newest = this.#at;
    const isNewest = at === newest || (this.reaches(at.place) && (at.isUpToDate || !newest.isUpToDate));
    if (isNewest) return (this.#next ??= this.#read());
    const late = (this.#late ??= this.#openLate(at));
    return late.admits(at) ? late.page : late.page.then(() => this.#pageBehind(at));
  }

  /** What they read behind the next page brings them to its end, so they wait for that one. */
  #openLate(at: Stop): LatePage {
    const next = (this.#next ??= this.#read());
    // Without a rejection: the read behind it ends for the same reason.
    const late = sleep(LATE_MS, undefined, { signal: this.#reads, ref: false }).catch(() => null);
    const read = (from: Stop) => this.#readLate(from);
    return new LatePage(at, this.question.changes, Promise.race([next, late]), read);
  }

  /** Nobody waits for a change here: they have to learn whether they are up to date. */
  async #readLate(from: Stop): Promise<Page | null> {
    const newest = this.#at.place;
    const page = await this.#reader.read({ ...from, isUpToDate: false }, newest).catch(() => null);
    this.#late = null;
    return page;
  }

  /** Null: followers read on by themselves. Each meets an error in its own loop, and says what it is. */
  async #read(): Promise<Page | null> {
    const page = await this.#rest()
      .then(() => this.#reader.read(this.#at, this.#at.place))
      .catch(() => null);
    if (page === null) {
      this.#close();
      return null;
    }
    this.#at = page.at;
    this.#madeAt = this.question.now();
    this.#next = null;
    return page;
  }

  #close(): void {
    const { changes, name } = this.question;
    if (pagesOf(this.question) === this) opened.get(changes)?.delete(name);
    this.#closed.abort(new Error('there are no more pages'));
  }

  /** Without requests, or when the page has taken long, readers go on at once. */
  #pause(run: () => void): void {
    const { begun, now } = this.question;
    if (begun() !== this.#requests) this.#requestedAt = now();
    this.#requests = begun();
    const isAsked = now() - this.#requestedAt < MOMENT_MS;
    if (isAsked && now() - this.#madeAt < LONGEST_PAUSES_MS) setTimeout(run, PAUSE_MS);
    else setImmediate(run);
  }

  /**
   * Waits until all followers had their turn with the page before, and for as long again: others have as much time, and what
   * changes meanwhile comes as one line.
   */
  async #rest(): Promise<void> {
    await this.#turns.next();
    const ms = Math.min(LONGEST_REST_MS, this.question.now() - this.#madeAt);
    if (ms >= TURN_MS) await sleep(ms, undefined, { signal: this.#reads });
  }
}

/** Waits until a sink has taken a page. Resolves with whether it did so before its follower was parked. */
async function isTakenSoon(taken: Promise<unknown>, parked: () => () => void): Promise<boolean> {
  if (await settlesWithin(taken, PARK_AFTER_MS)) return true;
  await taken.finally(parked());
  return false;
}

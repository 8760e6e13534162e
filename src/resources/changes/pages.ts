import { setTimeout as sleep } from 'node:timers/promises';
import { PARK_AFTER_MS } from '../../pipeline/pump.ts';
import type { Sink } from '../../pipeline/sink.ts';
import type { RowEncoder } from '../../rows/rows.ts';
import type { ChangedKeys, FeedPlace } from '../../store/change-feed.ts';
import { awaitAtMost, firstAbort, settlesWithin } from '../../store/turns/deadline.ts';
import { LoopTurns } from '../../store/turns/loop-turns.ts';
import type { Plan, RowReader } from '../../store/store.ts';
import type { FeedReader } from '../../store/turns/readers.ts';
import { encodeFeedCursor } from '../token/feed-cursor.ts';
import { BEHIND_MS, isWhole, linesOf } from './follow.ts';
import { removedLine } from './lines.ts';
import { Page, type ReaderPosition, type Stop } from './page.ts';

/** The most bytes of lines that readers get at once: what a reader that stalls keeps of them. Aim at half of it. */
const MOST_BYTES = 128 * 1024;
const MOST_KEYS = 1_000;
const FIRST_LINE_BYTES = 256;
/** How long readers are served in a row before the process looks at its sockets and timers. Milliseconds. */
const TURN_MS = 1;
/** How long the read behind a page waits at most. Milliseconds. */
const LONGEST_REST_MS = 200;

/** What followers have in common that get the same lines at the same place. */
export interface Question {
  /** The same text for the same question. */
  readonly name: string;
  readonly collection: string;
  readonly plan: Plan;
  /** For the readers' own loops. */
  readonly rows: RowReader;
  readonly changes: FeedReader;
  /** Makes an encoder of rows as lines. */
  readonly lines: () => RowEncoder;
  /** Whole lines as the response carries them. */
  readonly framed: (lines: Uint8Array) => Uint8Array;
  /** A clock in milliseconds. */
  readonly now: () => number;
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
  /** See AnswerOptions. */
  readonly heartbeatMs: number;
}

/** The response of a follower. */
interface Output {
  readonly sink: Sink;
  /** Called with the number of rows that the response has so far. */
  readonly wrote: (rows: number) => void;
  /** See PumpObserver. */
  readonly parked: () => () => void;
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
  readonly #turns = new LoopTurns(() => performance.now(), TURN_MS);
  /** The end of the newest page, and when it was made. */
  #at: Stop;
  #madeAt: number;
  /** The page behind it. Null: nobody has asked for it. */
  #next: Promise<Page | null> | null = null;
  /** The average of late. */
  #lineBytes = FIRST_LINE_BYTES;

  private constructor(question: Question, at: Stop) {
    const { changes, name, stopping, now } = question;
    this.question = question;
    this.#at = at;
    this.#madeAt = now();
    this.#reads = firstAbort([stopping], this.#closed.signal);
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
      if (given.taken) await untilTaken(given.taken, output.parked);
    }
  }

  /**
   * Writes the page behind a place, when it is the follower's turn. Null: there is none for it. What waits for the sink
   * afterwards does not hold the page.
   */
  async #give({ at, sums: before }: ReaderPosition, { sink, wrote }: Output): Promise<PageEntry | null> {
    if (this.#reads.aborted || !this.reaches(at.place)) return null;
    const page = await awaitAtMost(null, sink.signal, (this.#next ??= this.#read()));
    await this.#turns.next();
    sink.signal.throwIfAborted();
    if (!page) return null;
    const sums = page.sumsAfter(before);
    wrote(sums.rows);
    const taken = sink.write(page.textWith(sums));
    const flushed = sink.flush();
    return { at: page.at, sums, taken: taken || flushed ? Promise.all([taken, flushed]) : null };
  }

  /** Null: followers read on by themselves. Each meets an error in its own loop, and says what it is. */
  async #read(): Promise<Page | null> {
    const page = await this.#rest()
      .then(() => this.#readPage(this.#at))
      .catch(() => null);
    if (page === null || page.length > MOST_BYTES) {
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

  /**
   * Waits until all followers had their turn with the page before, and for as long again: others have as much time, and what
   * changes meanwhile comes as one line.
   */
  async #rest(): Promise<void> {
    await this.#turns.next();
    const ms = Math.min(LONGEST_REST_MS, this.question.now() - this.#madeAt);
    if (ms >= TURN_MS) await sleep(ms, undefined, { signal: this.#reads });
  }

  /** Reads on until there is something to say: lines, or that they were the last ones, or nothing for long. */
  async #readPage({ place, cursor: before, isUpToDate: wasUpToDate }: Stop): Promise<Page> {
    const { now, heartbeatMs, changes, plan, collection, framed } = this.question;
    const { identity } = plan;
    const dueAt = now() + heartbeatMs;
    for (let waitMs = wasUpToDate ? heartbeatMs : 0; ;) {
      const most = Math.max(1, Math.min(MOST_KEYS, Math.floor(MOST_BYTES / 2 / this.#lineBytes)));
      const changed = await changes.read(place, { most, waitMs }, identity, this.#reads);
      const lines = await this.#linesOf(changed);
      const isUpToDate = await isWhole(changes, changed, { plan, reads: this.#reads });
      place = changed.next;
      if (changed.keys.length > 0 || now() >= dueAt || (isUpToDate && !wasUpToDate)) {
        const cursor = encodeFeedCursor(collection, plan, { place, walk: 'over', identity }) ?? before;
        return new Page({ place, cursor, isUpToDate }, lines, framed);
      }
      waitMs = isUpToDate ? Math.max(1, dueAt - now()) : BEHIND_MS;
    }
  }

  /** The lines of keys, to their end unless they are too many bytes for a page. */
  async #linesOf(changed: ChangedKeys) {
    const { plan, changes, lines } = this.question;
    const position = { place: changed.next, walk: 'over' } as const;
    const texts: Uint8Array[] = [];
    let bytes = 0;
    let rows = 0;
    let removed = 0;
    const add = (text: Uint8Array) => {
      texts.push(text);
      bytes += text.length;
    };
    const encoder = lines();
    try {
      for await (const step of linesOf(changes, changed, position, { plan, reads: this.#reads })) {
        for (const chunk of step.rows ? encoder.encode(step.rows, MOST_BYTES) : []) add(Buffer.from(chunk));
        for (const id of step.removed ?? []) add(Buffer.from(removedLine(id)));
        rows += step.rows?.rows ?? 0;
        removed += step.removed?.length ?? 0;
        if (bytes > MOST_BYTES) break;
      }
    } finally {
      encoder.close();
    }
    if (bytes > 0) this.#lineBytes = bytes / (rows + removed);
    return { rows, removed, text: Buffer.concat(texts) };
  }
}

async function untilTaken(taken: Promise<unknown>, parked: () => () => void): Promise<void> {
  if (!(await settlesWithin(taken, PARK_AFTER_MS))) await taken.finally(parked());
}

import type { Sink } from '../../pipeline/sink.ts';
import type { FeedReader } from '../../store/turns/readers.ts';
import { FeedAnswer, oneFeed, type FeedEnd } from './answer.ts';
import type { Start } from './follow.ts';
import type { FeedSums, ReaderPosition } from './page.ts';
import { Pages } from './pages.ts';
import type { Question } from './question.ts';
import { sendAnswer, type FeedResponse } from './response.ts';

/** What a reader asks for that goes on behind pages. */
const ON = { opens: false, follows: true, waitMs: 0, limit: Infinity } as const;

/** Where a reader's own loop begins. */
interface Leg {
  readonly start: Start;
  readonly end: FeedEnd;
  readonly sums?: FeedSums;
}

/** How many readers have a question, by its name. */
const readers = new WeakMap<FeedReader, Map<string, number>>();

/** Whether a question has one reader. Pages are small: a reader alone that is behind reads more at once by itself. */
function isAlone({ changes, name }: Question): boolean {
  return readers.get(changes)?.get(name) === 1;
}

function countReaders(question: Question, more: 1 | -1): void {
  const counts = readers.get(question.changes) ?? new Map<string, number>();
  const count = (counts.get(question.name) ?? 0) + more;
  if (count === 0) counts.delete(question.name);
  else counts.set(question.name, count);
  readers.set(question.changes, counts);
}

/**
 * The run of a reader: by its own loop, and by the pages of its question from the end of the log on. There may be thousands at
 * rest, so a reader keeps nothing of its loop then, nor its query, and its question is the one of its pages.
 */
export class FeedRun {
  readonly #question: Question;
  readonly #response: FeedResponse;
  /** Where its loop is about to begin. */
  #leg: Leg | null;
  /** Where it waits for pages. */
  #rest: ReaderPosition | null = null;

  constructor(question: Question, leg: Leg, response: FeedResponse) {
    this.#question = question;
    this.#leg = leg;
    this.#response = response;
  }

  /** Resolves at the end of the response. */
  async run(sink: Sink): Promise<void> {
    countReaders(this.#question, 1);
    try {
      await this.#loop(sink);
      while (this.#rest) {
        await this.#follow(sink);
        await this.#loop(sink);
      }
    } finally {
      countReaders(this.#question, -1);
    }
  }

  async #loop(sink: Sink): Promise<void> {
    const question = this.#question;
    const leg = this.#leg;
    if (!leg) return;
    this.#leg = null;
    const { start, ...asked } = leg;
    const followed = oneFeed(question);
    const rests = (isUpToDate: boolean) => isUpToDate || !isAlone(question);
    const answer = new FeedAnswer(question.lines(), start, { ...question, ...asked, followed, rests });
    await sendAnswer(answer, sink, this.#response);
    this.#rest = answer.rest;
  }

  /** Without an await, which would keep where it stood for as long as it rests. */
  #follow(sink: Sink): Promise<void> | undefined {
    const rest = this.#rest;
    this.#rest = null;
    if (!rest) return;
    const { request, parked } = this.#response;
    const question = this.#question;
    const wrote = (rows: number) => void (request.notes.rows = rows);
    const output = { sink, wrote, parked, isAlone: () => isAlone(question) };
    return Pages.follow(question, rest, output).then(({ at, sums }) => {
      const { place, isUpToDate } = at;
      const first = { keys: [], next: place, isUpToDate };
      this.#leg = { start: { place, walk: 'over', first }, end: ON, sums };
    });
  }
}

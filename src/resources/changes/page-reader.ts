import type { ChangedKeys, FeedPlace } from '../../store/change-feed.ts';
import { encodeFeedCursor } from '../token/feed-cursor.ts';
import { BEHIND_MS, isWhole, linesOf } from './follow.ts';
import { removedLine } from './lines.ts';
import { Page, type Stop } from './page.ts';
import type { Question } from './question.ts';

/** The most bytes of lines that readers get at once: what a reader that stalls keeps of them. Aim at half of it. */
const MOST_BYTES = 128 * 1024;
const MOST_KEYS = 1_000;
const FIRST_LINE_BYTES = 256;

/** Reads the pages of a question. */
export class PageReader {
  readonly #question: Question;
  readonly #signal: AbortSignal;
  /** The average of late. */
  #lineBytes = FIRST_LINE_BYTES;

  constructor(question: Question, signal: AbortSignal) {
    this.#question = question;
    this.#signal = signal;
  }

  /**
   * Reads on behind a place until there is something to say: lines, or that they were the last ones, or nothing for long.
   * `known`: a place that was known before. A page up to the end of the log is not before it. Null: its lines are too
   * many bytes for a page.
   */
  async read(from: Stop, known: FeedPlace): Promise<Page | null> {
    const { now, heartbeatMs, changes, plan } = this.#question;
    const dueAt = now() + heartbeatMs;
    let { place } = from;
    for (let waitMs = from.isUpToDate ? heartbeatMs : 0; ;) {
      const most = Math.max(1, Math.min(MOST_KEYS, Math.floor(MOST_BYTES / 2 / this.#lineBytes)));
      const changed = await changes.read(place, { most, waitMs }, plan.identity, this.#signal);
      const lines = await this.#linesOf(changed);
      const isUpToDate = await isWhole(changes, changed, { plan, reads: this.#signal });
      place = changed.next;
      if (changed.keys.length > 0 || now() >= dueAt || (isUpToDate && !from.isUpToDate)) {
        if (changed.isUpToDate && !changes.reaches(place, known)) place = { ...place, token: known.token };
        const page = new Page(this.#stopAt(place, isUpToDate, from), lines, this.#question.framed);
        return page.length > MOST_BYTES ? null : page;
      }
      waitMs = isUpToDate ? Math.max(1, dueAt - now()) : BEHIND_MS;
    }
  }

  /** A cursor that would be too long is that of the stop before. */
  #stopAt(place: FeedPlace, isUpToDate: boolean, before: Stop): Stop {
    const { collection, plan } = this.#question;
    const { identity } = plan;
    const cursor = encodeFeedCursor(collection, plan, { place, walk: 'over', identity });
    return { place, isUpToDate, cursor: cursor ?? before.cursor };
  }

  /** The lines of keys, to their end unless they are too many bytes for a page. */
  async #linesOf(changed: ChangedKeys) {
    const { plan, changes, lines } = this.#question;
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
      for await (const step of linesOf(changes, changed, position, { plan, reads: this.#signal })) {
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

import type { ChangeEvent } from './change-events.ts';
import { LatestEvents } from './latest.ts';
import { isBefore, placeOfTime, timeOf, type Place } from './place.ts';
import type { FeedPage } from './page.ts';

/** The most changed rows of a collection that are kept for readers, and the most bytes of their keys and places. */
const MOST_ROWS = 20_000;
const MOST_BYTES = 8 * 1024 * 1024;

/** The rows of a collection that changed of late, and the readers that wait for the next one. */
export class Window {
  readonly collection: string;
  /** The events behind this place are here. Null: the stream has not begun yet. */
  start: Place | null = null;
  readers = 0;
  /** When the last reader left: performance.now(). */
  leftAt = 0;
  readonly #events = new LatestEvents();
  readonly #waiting = new Set<() => void>();

  constructor(collection: string) {
    this.collection = collection;
  }

  begin(start: Place): void {
    this.start = start;
    this.#events.clear();
  }

  /** Adds the events of this collection. The oldest ones leave when they become too many. Wakes the readers if any came. */
  add(events: readonly ChangeEvent[]): void {
    const own = events.filter(({ collections }) => !collections || collections.includes(this.collection));
    if (own.length === 0) return;
    for (const event of own) this.#events.add(event);
    while (this.#events.count > MOST_ROWS || (this.#events.bytes > MOST_BYTES && this.#events.count > 1))
      this.start = this.#events.dropOldest() ?? this.start;
    this.wake();
  }

  wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Adds the events behind a page's place, up to the stream's, `behind`. False: it is not inside the window. */
  fill(page: FeedPage, behind: Place): boolean {
    const from = page.next;
    if (!this.start || isBefore(from, this.start)) return false;
    const own = this.placeAt(behind);
    // A reader that has read its own history may be ahead of the stream.
    page.add(this.#events.behind(from), isBefore(from, own) ? own : from);
    return true;
  }

  /**
   * The stream's place for the readers of this collection. A stream of this collection alone does not find the token of an
   * event of another one: mongod says that it is not in the history. Within a transaction it is then the last own event,
   * or the time of all its events.
   */
  placeAt(behind: Place): Place {
    const time = timeOf(behind);
    const { last } = this.#events;
    return last?.time === time ? last.place : placeOfTime(time);
  }

  /** Resolves when something has changed, or after `ms` milliseconds. Rejects with the signal's reason. */
  changed(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const settle = (then: () => void) => () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        this.#waiting.delete(wake);
        then();
      };
      const wake = settle(resolve);
      const abort = settle(() => {
        reject(signal.reason as Error);
      });
      const timer = setTimeout(wake, ms);
      signal.addEventListener('abort', abort);
      this.#waiting.add(wake);
    });
  }
}

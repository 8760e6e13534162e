import { collectionReplaced } from '../../../base/errors.ts';
import { textOf, type Bookmark, type PointInTime } from '../../bookmark.ts';
import type { ScopePredicate } from '../../scope/predicate.ts';
import type { ChangeEvent } from './change-events.ts';
import { isShort, placeOfTime, timeOf, type Place } from './place.ts';

/** The keys of the events behind a place: each once, not many more than a reader asks for. */
export class FeedPage {
  /** How many keys a reader asks for. */
  readonly most: number;
  next: Place;
  /** The latest time of the events, and of those that the reader has had before. */
  seen: PointInTime | undefined;
  /** Whether every event that was added is in the page. */
  isWhole = true;
  /** The keys, as texts, of rows that matched the scope before an event. */
  readonly matchedBefore = new Set<string>();
  readonly #keys = new Map<string, Bookmark>();
  readonly #scope: ScopePredicate | undefined;
  #last: ChangeEvent | null = null;

  /**
   * `from`: the reader's place. `seen`: the time of the last event that the reader has had before. Without a `scope`, a
   * place may be a token, which holds the id of an event.
   */
  constructor(most: number, from: Place, seen: PointInTime | undefined, scope?: ScopePredicate) {
    this.most = most;
    this.next = from;
    this.seen = seen;
    this.#scope = scope;
  }

  get keys(): readonly Bookmark[] {
    return [...this.#keys.values()];
  }

  get count(): number {
    return this.#keys.size;
  }

  /**
   * Adds events. Returns false when the keys are enough before all of them are in the page; otherwise the place is then
   * `behind`. It may have more keys than asked for, where a transaction has no place between its events for a client.
   * Throws `collection-replaced` for the end of the collection, also one not reached: the rows before it are gone.
   */
  add(events: readonly ChangeEvent[], behind: Place): boolean {
    if (events.some(({ key }) => key === null)) throw collectionReplaced();
    for (const event of events) {
      const cut = this.#keys.size >= this.most ? this.#placeBefore(event) : null;
      if (cut) {
        this.next = cut;
        return (this.isWhole = false);
      }
      this.#take(event);
    }
    this.next = behind;
    this.#last = null; // the place behind is one that can be given
    return true;
  }

  #take(event: ChangeEvent): void {
    const { key, time, before } = event;
    if (key) {
      const name = textOf(key);
      this.#keys.set(name, key);
      if (before && this.#scope?.matches(before)) this.matchedBefore.add(name);
    }
    if (this.seen === undefined || time > this.seen) this.seen = time;
    this.#last = event;
  }

  /** A place between the last event of the page and the next one. Null: none can be given to clients. */
  #placeBefore({ time }: ChangeEvent): Place | null {
    const last = this.#last;
    if (!last) return this.next;
    if (!this.#scope && isShort(last.place)) return last.place;
    return last.time < time ? placeOfTime(last.time + 1n) : null;
  }
}

/**
 * Whether a stream that has given every event before a place has given every event up to a time. Events of one
 * transaction have one time, so reaching that time is not enough while the server had more events.
 */
export function hasReached(behind: Place, isDrained: boolean, time: PointInTime): boolean {
  const reached = timeOf(behind);
  return reached > time || (reached === time && isDrained);
}

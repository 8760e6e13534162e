import type { PointInTime } from '../../bookmark.ts';
import type { ChangeEvent } from './events.ts';
import { LatestEvents } from './latest.ts';
import { isBefore, type Place } from './place.ts';
import { Telling } from './telling.ts';

/** The most changed rows of a collection that are kept for readers, and the most bytes of their keys and places. */
const MOST_ROWS = 20_000;
const MOST_BYTES = 8 * 1024 * 1024;

/** What readers are told, and whether it is all that there is. */
interface Told {
  readonly telling: Telling;
  readonly isWhole: boolean;
}

/** The rows of a collection that changed of late, and the readers that wait for the next one. */
export class Window {
  readonly collection: string;
  /** The events behind this place are here. Null: the stream has not begun yet. */
  start: Place | null = null;
  /** Readers that use the window now. */
  readers = 0;
  /** When the last reader left: performance.now(). */
  leftAt = 0;
  readonly #events = new LatestEvents();
  readonly #givesTokens: boolean;
  /** What was told last, by what it was asked for: readers that an event wakes together ask for the same. */
  #known: { readonly asked: string; readonly most: number; readonly told: Told } | null = null;
  readonly #waiting = new Set<() => void>();

  constructor(collection: string, givesTokens = true) {
    this.#givesTokens = givesTokens;
    this.collection = collection;
  }

  /** Begins anew at a place, without events. */
  begin(start: Place): void {
    this.start = start;
    this.#events.clear();
    this.#known = null;
  }

  /** Adds the events of this collection. The oldest ones leave when they become too many. Wakes the readers if any came. */
  add(events: readonly ChangeEvent[]): void {
    const own = events.filter(({ collections }) => !collections || collections.includes(this.collection));
    if (own.length === 0) return;
    this.#known = null;
    for (const event of own) this.#events.add(event);
    while (this.#events.count > MOST_ROWS || (this.#events.bytes > MOST_BYTES && this.#events.count > 1))
      this.start = this.#events.dropOldest() ?? this.start;
    this.wake();
  }

  /** Wakes all readers, so that they look again. */
  wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /**
   * What follows a reader's place, when that is inside the window, and whether it is all up to `behind`, the place of
   * the stream. Null: the place is not inside.
   */
  tell(from: Place, seen: PointInTime | undefined, most: number, behind: Place): Told | null {
    if (!this.start || isBefore(from, this.start)) return null;
    const asked = [from.hex, String(from.typeBits), String(seen), behind.hex].join(' ');
    const known = this.#known;
    if (known?.asked === asked && isEnough(known, most)) return known.told;
    const told = this.#tell(from, seen, most, behind);
    this.#known = { asked, most, told };
    return told;
  }

  #tell(from: Place, seen: PointInTime | undefined, most: number, behind: Place): Told {
    const telling = new Telling(most, from, seen, this.#givesTokens);
    // A reader that has read its own history may be ahead of the stream.
    const isWhole = telling.add(this.#events.behind(from), isBefore(from, behind) ? behind : from);
    return { telling, isWhole };
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

/** Whether a reader that asks for at most `most` keys would be told the same. */
function isEnough(
  { most: before, told: { telling, isWhole } }: { readonly most: number; readonly told: Told },
  most: number,
): boolean {
  return most === before || (isWhole && telling.count < most);
}

import { textOf, type Bookmark } from '../../store/bookmark.ts';
import { removedLine } from './lines.ts';

/** The types of ids of which two can look the same in JSON: double, document, int, long, decimal. */
const ALIKE: ReadonlySet<number | undefined> = new Set([0x01, 0x03, 0x10, 0x12, 0x13]);

/**
 * Keys that changed, until their rows or removals are written. A key whose row was not found when all are looked up is
 * removed.
 *
 * The key of a row may have another type than the key that changed (7 and 7.0). In JSON both look the same, so the old
 * one must be removed before the row comes: such rows are put off, and looked up by their own keys in the next round.
 */
export class PendingKeys {
  #keys = new Map<string, Bookmark>();
  #putOff = new Map<string, Bookmark>();
  /** How many of the keys of this round have the same JSON. */
  #shown: ReadonlyMap<string, number> = new Map();

  /** Begins with other keys. */
  take(keys: readonly Bookmark[]): void {
    this.#keys = new Map(keys.map((key) => [textOf(key), key]));
    this.#putOff.clear();
  }

  get size(): number {
    return this.#keys.size;
  }

  /** The keys to look up now. */
  lookUp(): readonly Bookmark[] {
    const keys = [...this.#keys.values()];
    this.#putOff.clear();
    this.#shown = countShown(keys);
    return keys;
  }

  /** Whether a row that was found is to be written now. `isToCome`: a walk will meet it, so nothing is to be written. */
  isNow(id: Bookmark, isToCome: boolean): boolean {
    const text = textOf(id);
    const isAlone = !isShownAlike(id) || (this.#shown.get(removedLine(id)) ?? 0) <= 1;
    if (this.#keys.has(text) && isAlone && !isToCome) return true;
    this.#keys.delete(text);
    if (!isToCome) this.#putOff.set(text, id);
    return false;
  }

  /** The rows of these keys were written, up to `last`. */
  written(ids: readonly Bookmark[], last?: Bookmark): void {
    const end = last && textOf(last);
    for (const id of ids) {
      const text = textOf(id);
      this.#keys.delete(text);
      if (text === end) return;
    }
  }

  /** Ends a round, when all rows have come. Returns the keys that are left: those are removed. */
  removals(): readonly Bookmark[] {
    const left = [...this.#keys.values()];
    this.#keys = this.#putOff;
    this.#putOff = new Map();
    return left;
  }
}

function isShownAlike(id: Bookmark): boolean {
  return ALIKE.has(id[4]);
}

/** How many of these ids have the same JSON. */
function countShown(ids: readonly Bookmark[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const id of ids.filter(isShownAlike)) {
    const line = removedLine(id);
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return counts;
}

import { textOf, type Bookmark } from '../../store/bookmark.ts';
import { removedLine } from './lines.ts';

/** The types of ids of which two can look the same in JSON: double, document, int, long, decimal. */
const ALIKE: ReadonlySet<number | undefined> = new Set([0x01, 0x03, 0x10, 0x12, 0x13]);

/**
 * Changed keys, until their rows are written. Those whose rows are not found are removed. A row's key may have another
 * type than the changed one (7 and 7.0) but look the same in JSON. The old one must be removed first, so such rows are
 * put off, and looked up by their own keys in the next round.
 */
export class Round {
  readonly #keys: Map<string, Bookmark>;
  readonly #putOff = new Map<string, Bookmark>();
  /** How many of the keys have the same JSON. */
  readonly #shown: ReadonlyMap<string, number>;

  constructor(keys: readonly Bookmark[]) {
    this.#keys = new Map(keys.map((key) => [textOf(key), key]));
    this.#shown = countShown(keys);
  }

  /** The keys whose rows were not written. */
  get keys(): readonly Bookmark[] {
    return [...this.#keys.values()];
  }

  /** The keys that are left when the rows of these ones were written only up to `last`. */
  keysAfter(ids: readonly Bookmark[], last: Bookmark): readonly Bookmark[] {
    const texts = ids.map(textOf);
    const written = texts.slice(0, texts.indexOf(textOf(last)) + 1);
    return [...this.#keys].flatMap(([text, key]) => (written.includes(text) ? [] : key));
  }

  get next(): Round {
    return new Round([...this.#putOff.values()]);
  }

  /** Whether to write a row that was found now. `isToCome`: a walk will meet it, so it is not written at all. */
  isNow(id: Bookmark, isToCome: boolean): boolean {
    const text = textOf(id);
    const isAlone = !isShownAlike(id) || (this.#shown.get(removedLine(id)) ?? 0) <= 1;
    if (this.#keys.has(text) && isAlone && !isToCome) return true;
    this.#keys.delete(text);
    if (!isToCome) this.#putOff.set(text, id);
    return false;
  }

  written(ids: readonly Bookmark[]): void {
    for (const id of ids) this.#keys.delete(textOf(id));
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

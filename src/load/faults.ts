import type { Outcome } from './counts.ts';

/** What an answer to a reader was, or `write`: a write failed. */
type Kind = Outcome | 'write';

const MOST_TEXTS = 3;
const MOST_CHARACTERS = 300;

/** The first few reasons for each kind of bad answer, for the verdict. */
export class Faults {
  readonly #texts = new Map<Kind, Set<string>>();

  add(kind: Kind, text: string): void {
    const texts = this.#texts.get(kind) ?? new Set();
    this.#texts.set(kind, texts);
    if (texts.size < MOST_TEXTS) texts.add(text.slice(0, MOST_CHARACTERS));
  }

  of(kind: Kind): readonly string[] {
    return [...(this.#texts.get(kind) ?? [])];
  }
}

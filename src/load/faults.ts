import type { Outcome } from './counts.ts';

const MOST_TEXTS = 3;
const MOST_CHARACTERS = 300;

/** The first few reasons for each kind of bad answer, for the verdict. */
export class Faults {
  readonly #texts = new Map<Outcome, Set<string>>();

  add(outcome: Outcome, text: string): void {
    const texts = this.#texts.get(outcome) ?? new Set();
    this.#texts.set(outcome, texts);
    if (texts.size < MOST_TEXTS) texts.add(text.slice(0, MOST_CHARACTERS));
  }

  of(outcome: Outcome): readonly string[] {
    return [...(this.#texts.get(outcome) ?? [])];
  }
}

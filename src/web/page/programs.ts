/** Programs to choose from, of which one is shown. */
import { element, make, say } from './dom.ts';
import type { Snippet } from './snippets.ts';

/** A group of choices `{id}-programs`, with the chosen program in `{id}-code` and what it needs in `{id}-note`. */
export class Programs {
  readonly #id: string;
  #chosen: string;

  /** `chosen`: the title of the one that is shown first. */
  constructor(id: string, chosen: string) {
    this.#id = id;
    this.#chosen = chosen;
  }

  /** Shows these programs, and of them the one that was chosen before, or else the first. */
  show(snippets: readonly Snippet[]): void {
    if (!snippets.some(({ title }) => title === this.#chosen)) this.#chosen = snippets[0]?.title ?? '';
    element(`${this.#id}-programs`).replaceChildren(...snippets.map((one) => this.#choiceOf(one)));
  }

  #choiceOf({ title, code, note }: Snippet): HTMLElement {
    const choose = () => {
      this.#chosen = title;
      say(`${this.#id}-code`, code);
      say(`${this.#id}-note`, note);
    };
    const isChosen = title === this.#chosen;
    if (isChosen) choose();
    const attributes = { type: 'radio', name: `${this.#id}-program`, checked: isChosen, onchange: choose };
    return make('label', make('input.unseen', attributes), title);
  }
}

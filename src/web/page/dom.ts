/** Small functions over the DOM that all parts of the page use. */
import { isAbort, reasonOf } from './text.ts';

type Child = Node | string | null | undefined | false;
type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** Makes an element. An attribute that is true is set empty; one that is false or undefined is left out. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== false) made.setAttribute(name, value === true ? '' : String(value));
  made.append(...children.filter((child) => child instanceof Node || typeof child === 'string'));
  return made;
}

/** Makes a sentence that explains what it stands beside. */
export function hint(text: string): HTMLElement {
  return make('p', { class: 'hint' }, text);
}

/** Makes a button that acts when it is clicked. */
export function button(
  attributes: Attributes,
  act: () => unknown,
  ...children: readonly Child[]
): HTMLButtonElement {
  const made = make('button', { type: 'button', ...attributes }, ...children);
  on(made, 'click', act);
  return made;
}

/** The element with this id. TypeError when the page lacks it, or when it is of another kind. */
export function element(id: string): HTMLElement;
export function element<T extends HTMLElement>(id: string, kind: new () => T): T;
export function element(id: string, kind: new () => HTMLElement = HTMLElement): HTMLElement {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new TypeError(`the page has no element ${id} of this kind`);
  return found;
}

export function say(id: string, text: string): void {
  const place = element(id);
  // A status that is set anew is read out again.
  if (place.textContent !== text) place.textContent = text;
}

/** Runs an event's handler. `warn` shows its failure to the user. */
export function on(
  target: EventTarget,
  event: string,
  act: (happened: Event) => unknown,
  fail: (text: string) => void = (text) => warn(text),
): void {
  target.addEventListener(event, (happened) => {
    if (event === 'submit') happened.preventDefault();
    run(() => act(happened), fail);
  });
}

/** Runs an action without waiting for it. `fail` shows its failure to the user. */
export function run(act: () => unknown, fail = (text: string): void => warn(text)): void {
  const settle = async () => {
    try {
      await act();
    } catch (error) {
      if (!isAbort(error)) fail(reasonOf(error));
    }
  };
  void settle();
}

/** Shows a sentence above the content until the next one. Empty: hides it. `again`: what may help to try. */
export function warn(text: string, again?: () => unknown): void {
  say('warning', text);
  element('warning').hidden = text === '';
  if (again) element('warning').append(tryAgain(again));
}

export function tryAgain(again: () => unknown): HTMLButtonElement {
  return button({ class: 'small' }, again, 'Try again');
}

/** A button that copies text, and says that it did. */
export function copyButton(textToCopy: () => string, label = 'Copy'): HTMLButtonElement {
  const copies = async () => {
    await copy(textToCopy());
    made.textContent = 'Copied';
    setTimeout(() => (made.textContent = label), 1500);
  };
  const made = button({ class: 'small' }, copies, label);
  return made;
}

/** Copies text. Pages of another host without TLS have no clipboard, only the old command. */
async function copy(text: string): Promise<void> {
  if (window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = make('textarea', { class: 'unseen' });
  area.value = text;
  document.body.append(area);
  area.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way without TLS
  document.execCommand('copy');
  area.remove();
}

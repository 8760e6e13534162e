/** Small functions over the DOM that all parts of the page use. */
import { isAbort, reasonOf } from './text.ts';

type Tag = keyof HTMLElementTagNameMap;
type TagOf<T> = T extends `${infer Name}.${string}` ? Name : T;
type ElementOf<T> = HTMLElementTagNameMap[TagOf<T> & Tag];
type Attributes = Readonly<Record<string, string | number | boolean | (() => unknown) | undefined>>;

/**
 * Makes an element of a tag with classes (`button.small`), of its attributes and of what is inside. An attribute that is true
 * is set empty; one that is false or undefined is left out; a function hears the event (`onclick`).
 */
export function make<T extends Tag | `${Tag}.${string}`>(
  what: T,
  ...parts: readonly (Attributes | Node | string | false)[]
): ElementOf<T> {
  const [tag = '', ...classes] = what.split('.');
  const made = document.createElement(tag) as ElementOf<T>;
  if (classes.length > 0) made.className = classes.join(' ');
  for (const part of parts) {
    if (part === false) continue;
    if (part instanceof Node || typeof part === 'string') made.append(part);
    else
      for (const [name, value] of Object.entries(part))
        if (typeof value === 'function') on(made, name.slice('on'.length), value);
        else if (value !== undefined && value !== false)
          made.setAttribute(name, value === true ? '' : String(value));
  }
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

/** Runs the handler of an event. `warn` shows its failure to the user. Forms of this page send nothing by themselves. */
export function on(target: EventTarget, event: string, act: (happened: Event) => unknown): void {
  target.addEventListener(event, (happened) => {
    if (event === 'submit') happened.preventDefault();
    run(() => act(happened));
  });
}

/** Acts when Escape is pressed inside an element. */
export function onEscape(id: string, act: () => unknown): void {
  element(id).addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') act();
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

export function tryAgain(again: () => unknown): HTMLElement {
  return make('button.small', { onclick: again }, 'Try again');
}

/** A button that copies text, and says that it did. */
export function copyButton(textToCopy: () => string, label = 'Copy'): HTMLElement {
  const copies = async () => {
    await copy(textToCopy());
    made.textContent = 'Copied';
    setTimeout(() => (made.textContent = label), 1500);
  };
  const made = make('button.small', { onclick: copies }, label);
  return made;
}

/** Copies text. Pages of another host without TLS have no clipboard, only the old command. */
async function copy(text: string): Promise<void> {
  if (window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = make('textarea.unseen', text);
  document.body.append(area);
  area.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way without TLS
  document.execCommand('copy');
  area.remove();
}
